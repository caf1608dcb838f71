// Where the `mcproof` program is, and the same engine as an addon. Knows names of packages and one variable, not what the program does.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Platforms that a package with the program exists for. */
const PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-x64"];

/** What the program is called there. */
const PROGRAM = process.platform === "win32" ? "mcproof.exe" : "mcproof";

/** The program of this machine's platform package, or the one that the variable `MCPROOF_BINARY` names. */
export function binary(): string {
  const named = process.env["MCPROOF_BINARY"];
  if (named) {
    return named;
  }
  const platform = `${process.platform}-${process.arch}`;
  if (!PLATFORMS.includes(platform)) {
    throw new Error(`mcproof does not run on ${platform}; it runs on ${PLATFORMS.join(", ")}`);
  }
  const names = packages(platform);
  for (const name of names) {
    try {
      return createRequire(import.meta.url).resolve(`${name}/bin/${PROGRAM}`);
    } catch {
      // The next one may be installed.
    }
  }
  throw new Error(
    `the package ${names[0]}, which holds the mcproof program, is not installed: ` +
      "reinstall mcproof without --omit=optional (a lock file from another platform may lack it), or set MCPROOF_BINARY to the path of a program",
  );
}

/** Those whose program runs here, best first. The static one runs with every C library. */
function packages(platform: string): string[] {
  const name = `@mcproof/cli-${platform}`;
  if (process.platform !== "linux") {
    return [name];
  }
  return usesGlibc() ? [name, `${name}-musl`] : [`${name}-musl`];
}

/** Whether this Node.js was linked with glibc; Alpine's was not. */
function usesGlibc(): boolean {
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime !== undefined;
}

/** The addon beside the program, if there is one. */
export function addon(): string | undefined {
  const path = join(dirname(binary()), "mcproof.node");
  return existsSync(path) ? path : undefined;
}
