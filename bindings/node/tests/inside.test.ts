import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { binary } from "mcproof";
import { expect, it } from "vitest";

const script = new URL("inside.mjs", import.meta.url).pathname;
const same = { sums: [2, 3, 4], silent: "unanswered" };

async function run(env: Record<string, string>): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env: { ...process.env, ...env } });
  return JSON.parse(stdout);
}

it("a server object is driven without a process beside it", async () => {
  expect(await run({})).toEqual({ ...same, children: 0 });
});

it("a program without its addon does the same with one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mcproof-alone-"));
  const program = join(folder, "mcproof");
  copyFileSync(binary(), program);
  try {
    expect(await run({ MCPROOF_BINARY: program })).toEqual({ ...same, children: 1 });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("threads have engines of their own, which end with them in the middle of a call", async () => {
  for (let round = 0; round < 3; round += 1) {
    const workers = [1, 2, 3].map(() => new Worker(script));
    const told = await Promise.all(workers.map((worker) => new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject))));
    expect(told).toMatchObject([same, same, same]);
    expect(await Promise.all(workers.map((worker) => worker.terminate()))).toEqual([1, 1, 1]);
  }
});
