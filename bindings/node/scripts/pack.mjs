// Makes the two tarballs that are published: the package, and the one with the program of this machine's platform.
//
//     node scripts/pack.mjs --binary target/dist/mcproof --addon target/dist/libmcproof_node.so --out target/bindings/node
//
// The compiler is looked for from the folder of the tarballs (`npm ci` there with the lock file of tests/).
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { binary: { type: "string" }, addon: { type: "string" }, out: { type: "string" } } });
if (!values.binary || !values.addon || !values.out) {
  console.error("usage: node scripts/pack.mjs --binary <mcproof> --addon <library> --out <folder>");
  process.exit(2);
}
const binary = resolve(values.binary);
const out = resolve(values.out);
const source = dirname(dirname(fileURLToPath(import.meta.url)));
const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));

const version = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim().split(" ").pop();
const platform = `@mcproof/cli-${process.platform}-${process.arch}`;
if (version !== manifest.version || manifest.optionalDependencies[platform] !== version) {
  console.error(`${binary} is version ${version}, package.json is ${manifest.version} and asks for ${JSON.stringify(manifest.optionalDependencies)}`);
  process.exit(1);
}

const main = folder("mcproof");
for (const part of ["src", "bin", "package.json", "tsconfig.json", "README.md"]) {
  cpSync(join(source, part), join(main, part), { recursive: true });
}
const typescript = dirname(createRequire(join(out, "package.json")).resolve("typescript/package.json"));
execFileSync(process.execPath, [join(typescript, "bin/tsc"), "--project", main], { stdio: "inherit" });
pack(main);

const program = folder(platform.slice(1).replace("/", "-"));
const packed = join(program, "bin", process.platform === "win32" ? "mcproof.exe" : "mcproof");
mkdirSync(dirname(packed));
cpSync(binary, packed);
// The name by which Node.js knows what to do with it.
const addon = join(dirname(packed), "mcproof.node");
cpSync(resolve(values.addon), addon);
if (process.platform === "linux") {
  // Half of a development build is what only a debugger reads; a release build has none of it.
  execFileSync("strip", ["--strip-unneeded", packed, addon]);
}
chmodSync(packed, 0o755);
const { license } = manifest;
const where = { os: [process.platform], cpu: [process.arch], ...(process.platform === "linux" ? { libc: ["glibc"] } : {}) };
const description = `The mcproof program for ${process.platform} on ${process.arch}; the package mcproof brings it`;
writeFileSync(join(program, "package.json"), JSON.stringify({ name: platform, version, description, license, ...where, files: ["bin"] }, null, 2));
pack(program);

function folder(name) {
  const path = join(out, "build", name);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}

function pack(path) {
  const [{ filename, size }] = JSON.parse(execFileSync("npm", ["pack", path, "--json", "--pack-destination", out], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  console.log(`${join(out, filename)}: ${(size / 1e6).toFixed(2)} MB`);
}
