// What people see of a failing test, and what is left of a test runner that is killed.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";

const here = dirname(new URL(import.meta.url).pathname);
const programs = createRequire(import.meta.url);

const runners = {
  vitest: { script: join(dirname(programs.resolve("vitest/package.json")), "vitest.mjs"), config: "failing/vitest.config.mjs" },
  jest: { script: join(dirname(programs.resolve("jest/package.json")), "bin/jest.js"), config: "failing/jest.config.json" },
};

function start(runner: "vitest" | "jest", { filter, config = runners[runner].config, env = {} }: { filter?: string; config?: string; env?: Record<string, string> }): ChildProcess {
  const flags = [...(runner === "vitest" ? ["run"] : []), "--config", config, ...(filter ? [filter] : [])];
  // The variables of this vitest are not for the other.
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|JEST|TEST$|NODE_ENV$|NODE_OPTIONS$)/.test(name)));
  const node = runner === "jest" ? ["--experimental-vm-modules", "--no-warnings"] : [];
  return spawn(process.execPath, [...node, runners[runner].script, ...flags], { cwd: here, env: { ...clean, NO_COLOR: "1", ...env }, detached: true });
}

async function output(child: ChildProcess): Promise<{ text: string; code: number | null }> {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { text, code };
}

it("a failing vitest test shows the frames of its session, once", async () => {
  const { text, code } = await output(start("vitest", { filter: "failing/plain" }));
  expect(code, text).toBe(1);
  expect(text).toContain("Tests  4 failed | 1 passed");
  const call = (args: string): RegExp => new RegExp(`→ tools/call #\\d+ .*${args}`);
  expect(text).toMatch(call('"a":20,"b":22'));
  expect(text).toMatch(call('"a":7,"b":0'));
  expect(text).toMatch(/→ no\/such\/method #\d+/);
  expect(text).toMatch(call('"a":500,"b":5'));
  expect(text).not.toMatch(/"a":1000,"b":1\b/);
  expect(text).not.toContain('"text":"1001"');
  // The plain assertion fails in the summary and nowhere else.
  expect(text.match(call('"a":20,"b":22').source)).toHaveLength(1);
  expect(text).not.toContain("Serialized Error");
});

it("a failing jest test shows the frames of its session", async () => {
  const { text, code } = await output(start("jest", { filter: "failing/failing" }));
  expect(code, text).toBe(1);
  expect(text).toContain('Expected: "43"');
  expect(text).toMatch(/→ tools\/call #\d+ .*"a":20,"b":22/);
});

it("a fault on the wire fails the vitest test that it came in", async () => {
  const { text, code } = await output(start("vitest", { filter: "failing/faults" }));
  expect(code, text).toBe(1);
  expect(text).toContain("Tests  11 failed | 6 passed");
  expectFaults(text, "FAIL  failing/faults.test.ts > ");
});

it("a fault on the wire fails each attempt of a vitest test", async () => {
  const { text, code } = await output(start("vitest", { filter: "failing/retried" }));
  expect(code, text).toBe(1);
  expect(text).toContain("Tests  3 failed | 1 passed");
  // Each of the three attempts, the second attempt, and each of the two repetitions.
  expect(text.match(/McproofError: the server wrote a line on stdout/g), text).toHaveLength(6);
  expect(text).toContain("expected 1 to be 2");
});

it("a fault on the wire fails the jest test that it came in", async () => {
  const { text, code } = await output(start("jest", { filter: "failing/faults" }));
  expect(code, text).toBe(1);
  expect(text).toMatch(/Tests: +10 failed, 6 passed/);
  expectFaults(text, "● ");
});

function expectFaults(text: string, prefix: string): void {
  for (const name of ["noise, closed", "twice, closed", "end, closed", "malformed, closed", "large, closed", "late noise, closed", "noise, and a failure of its own", "crash, instead of an error"]) {
    expect(text).toContain(prefix + name);
  }
  for (const name of ["sound", "noise, allowed", "malformed, left out", "crash, expected"]) {
    expect(text).not.toContain(prefix + name);
  }
  expect(text).toMatch(/McproofError: the server wrote a line on stdout that is not an MCP message .*`debug: called`\n +wire .*\n[^]*← debug: called\n +hint .* stderr/);
  expect(text).toMatch(/McproofError: the server sent another response with id 3/);
  expect(text).toMatch(/McproofError: server exited with code 7, .*, after its last response/);
  expect(text).toMatch(/McproofError: server exited with code 9, .*, instead of sending a response\n[^]*hint .*`client\.ended`/);
  expect(text).toMatch(/McproofError: .*`content\[0\]\.text` is missing[^]*hint .*`mcproof explain message-matches-schema`/);
  expect(text).toMatch(/McproofError: .*`debug: bye`/);
  expect(text).toMatch(/McproofError: not judged: \d+ frames of this session were not kept[^]*hint .*`allowFaults`/);
  // What a test failed with itself comes first, and alone.
  expect(text).toContain("its own failure");
  expect(text).not.toMatch(/its own failure\n+McproofError/);
}

it.each(["vitest", "jest"] as const)("a session that nobody closes is judged until its end by %s", async (runner) => {
  const { text, code } = await output(start(runner, { filter: "failing/unclosed" }));
  expect(code, text).toBe(1);
  expect(text).toMatch(/McproofError: .*`debug: bye`/);
});

it("a session that nobody closes is judged until its end without a plugin", async () => {
  const { text, code } = await output(spawn(process.execPath, ["--test", "failing/unclosed.node.mjs"], { cwd: here }));
  expect(code, text).toBe(1);
  expect(text).toMatch(/McproofError: .*`debug: called`/);
  expect(text).toMatch(/McproofError: .*`debug: bye`/);
});

it("a process that exits by itself says which sessions it has not judged", async () => {
  const { text, code } = await output(spawn(process.execPath, ["failing/exit.mjs"], { cwd: here }));
  expect(code, text).toBe(1);
  expect(text).toContain("sessions were open when the process exited, and were not judged: 1");
});

it("jest runs the matchers and suites", async () => {
  const { text, code } = await output(start("jest", { config: "jest/jest.config.json" }));
  expect(code, text).toBe(0);
  expect(text).toMatch(/Tests: +3 passed/);
});

it("the package brings the program under its name", () => {
  const mcproof = (...args: string[]) => spawnSync(join(here, "node_modules/.bin/mcproof"), args, { encoding: "utf8" });
  expect(mcproof("--version").stdout).toMatch(/^mcproof \d/);
  expect(mcproof("test", "no-such-file.yaml").status).toBe(2);
});

it("a test runner that is killed leaves no process", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mcproof-"));
  try {
    const file = join(folder, "pids.json");
    const runner = start("vitest", { filter: "failing/stuck", env: { PIDS_FILE: file } });
    await until("the servers run", () => existsSync(file) && readFileSync(file, "utf8").endsWith("]"));
    const [worker, ...servers] = JSON.parse(readFileSync(file, "utf8")) as number[];
    const engines = children(worker ?? 0);
    expect(servers).toHaveLength(2);
    expect(engines).not.toHaveLength(0);
    for (const each of [...servers, ...engines]) {
      expect(isAlive(each), `process ${each}`).toBe(true);
    }
    process.kill(runner.pid ?? 0, "SIGKILL");
    await until("all processes are gone", () => [...servers, ...engines].every((each) => !isAlive(each)));
    // Vitest's own worker outlives it until the test is done.
    expect(isAlive(worker ?? 0)).toBe(true);
    process.kill(worker ?? 0, "SIGKILL");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!holds()) {
    expect(Date.now(), what).toBeLessThan(deadline);
    await sleep(50);
  }
}

/** A process that nobody has waited for yet is dead. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

function children(pid: number): number[] {
  const tasks = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return tasks.trim().split(/\s+/).filter(Boolean).map(Number);
}
