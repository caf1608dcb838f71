// Where the `mcproof` program is, and the same engine as an addon. Knows names of packages and one variable, not what the program does.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** The program of this machine's platform package, or the one that the variable `MCPROOF_BINARY` names. */
export function binary(): string {
  const named = process.env["MCPROOF_BINARY"];
  if (named) {
    return named;
  }
  const name = `@mcproof/cli-${process.platform}-${process.arch}`;
  const program = process.platform === "win32" ? "mcproof.exe" : "mcproof";
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/${program}`);
  } catch {
    throw new Error(
      `the package ${name} is not installed, which holds the mcproof program; ` +
        "install without --no-optional, or name a program in MCPROOF_BINARY",
    );
  }
}

/** The addon beside the program, if there is one. */
export function addon(): string | undefined {
  const path = join(dirname(binary()), "mcproof.node");
  return existsSync(path) ? path : undefined;
}
