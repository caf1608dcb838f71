#!/usr/bin/env node
// `npx mcproof …`: the program itself, with the same arguments, streams and exit.
import { spawn } from "node:child_process";
import { binary } from "../dist/binary.js";

let program;
try {
  program = binary();
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exit(70);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // On Windows the console sends this to mcproof as well, and `kill` would terminate it at once.
  process.on(signal, () => process.platform === "win32" || child.kill(signal));
}
child.on("error", (error) => {
  console.error(`error: cannot start ${program}: ${error.message}`);
  process.exitCode = 70;
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code ?? 70;
  }
});
