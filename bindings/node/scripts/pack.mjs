// Makes the tarballs that are published: the package, and one with the program for a platform.
//
//     node scripts/pack.mjs --binary target/dist/mcproof --addon target/dist/libmcproof_node.so --out target/bindings/node
//
// `--platform linux-arm64` names another platform than this machine's; a static program (`linux-x64-musl`) has no addon. `--repository`
// is the URL that provenance is checked against, `--notices` a file with the licenses of what is in the program. The compiler is looked for in `--tools`, or else the folder of the tarballs (`npm ci`
// there with the lock file of tests/).
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const text = { type: "string" };
const { values } = parseArgs({ options: { binary: text, addon: text, notices: text, out: text, platform: text, repository: text, tools: text } });
if (!values.binary || !values.out) {
  console.error("usage: node scripts/pack.mjs --binary <mcproof> [--addon <library>] [--platform <os-cpu[-musl]>] [--repository <url>] --out <folder>");
  process.exit(2);
}
const binary = resolve(values.binary);
const out = resolve(values.out);
// Types are looked for in the folders above what is compiled.
const tools = resolve(values.tools ?? out);
const source = dirname(dirname(fileURLToPath(import.meta.url)));
const top = dirname(dirname(source));
const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
const { version, license } = manifest;
const here = `${process.platform}-${process.arch}`;
const target = values.platform ?? here;
const [os, cpu, musl] = target.split("-");

const name = `@mcproof/cli-${target}`;
if (manifest.optionalDependencies[name] !== version) {
  console.error(`package.json is version ${version}, and asks for ${JSON.stringify(manifest.optionalDependencies)}, not for ${name} ${version}`);
  process.exit(1);
}
if (`${os}-${cpu}` === here) {
  const told = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim().split(" ").pop();
  if (told !== version) {
    console.error(`${binary} is version ${told}, package.json is ${version}`);
    process.exit(1);
  }
}
const published = values.repository ? { repository: { type: "git", url: `git+${values.repository}.git` } } : {};

const main = folder("mcproof");
for (const part of ["src", "bin", "tsconfig.json", "README.md"]) {
  cpSync(join(source, part), join(main, part), { recursive: true });
}
licenses(main);
writeFileSync(join(main, "package.json"), JSON.stringify({ ...manifest, ...published }, null, 2));
const typescript = dirname(createRequire(join(tools, "package.json")).resolve("typescript/package.json"));
execFileSync(process.execPath, [join(typescript, "bin/tsc"), "--project", main], { stdio: "inherit" });
pack(main);

const program = folder(name.slice(1).replace("/", "-"));
const bin = join(program, "bin");
mkdirSync(bin);
const packed = [join(bin, os === "win32" ? "mcproof.exe" : "mcproof")];
cpSync(binary, packed[0]);
if (values.addon) {
  // The name by which Node.js knows what to do with it.
  packed.push(join(bin, "mcproof.node"));
  cpSync(resolve(values.addon), packed[1]);
}
if (target === here && os === "linux") {
  // Half of a development build is what only a debugger reads; a release build has none of it.
  execFileSync("strip", ["--strip-unneeded", ...packed]);
}
chmodSync(packed[0], 0o755);
licenses(program);
if (values.notices) {
  cpSync(resolve(values.notices), join(program, "THIRD-PARTY.txt"));
}
const libc = os === "linux" ? { libc: [musl ?? "glibc"] } : {};
const description = `The mcproof program for ${target}; the package mcproof brings it`;
const parts = { name, version, description, license, ...published, os: [os], cpu: [cpu], ...libc, files: ["bin", "LICENSE-*", "THIRD-PARTY.txt"] };
writeFileSync(join(program, "package.json"), JSON.stringify(parts, null, 2));
pack(program);

function folder(name) {
  const path = join(tools, "build", name);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}

function licenses(path) {
  for (const file of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    cpSync(join(top, file), join(path, file));
  }
}

function pack(path) {
  const [{ filename, size }] = JSON.parse(execFileSync("npm", ["pack", path, "--json", "--pack-destination", out], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  console.log(`${join(out, filename)}: ${(size / 1e6).toFixed(2)} MB`);
}
