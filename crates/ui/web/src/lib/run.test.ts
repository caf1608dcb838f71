import { expect, test, vi } from "vitest";

// The page asks its document and the system for colors as it begins.
const { sent } = vi.hoisted(() => {
  const sent: { path: string; body: string; answer: (text: string) => void }[] = [];
  Object.assign(globalThis, {
    document: { getElementById: () => null, documentElement: { dataset: {} } },
    matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
    fetch: (path: string, { body }: { body: string }) => new Promise((done) => sent.push({ path, body, answer: (text) => done({ ok: true, text: async () => text }) })),
  });
  return { sent };
});
const { isUnderWay, run, runs, stepsOf, unsaved } = await import("./store");

test("a call is sent once until it has ended", async () => {
  const all = [run("1 tools pay", 1, "tools/call", { name: "pay" }), run("1 tools pay", 1, "tools/call", { name: "pay" }), run("1 tools pay", 1, "tools/call", { name: "pay" })];
  expect(sent.map(({ path }) => path)).toEqual(["/api/connections/1/request"]);
  expect(isUnderWay(runs.value.get("1 tools pay"))).toBe(true);
  // Another tool waits for nothing.
  void run("1 tools list", 1, "tools/call", { name: "list" });
  expect(sent).toHaveLength(2);
  sent[0]!.answer('{"session":2,"result":{"content":[]},"canceled":false,"requestFrame":1,"frame":2,"elapsedUs":3}');
  expect(new Set((await Promise.all(all)).map(({ key }) => key)).size).toBe(1);
  expect(isUnderWay(runs.value.get("1 tools pay"))).toBe(false);
  void run("1 tools pay", 1, "tools/call", { name: "pay" });
  expect(sent).toHaveLength(3);
});

test("steps of a session go on with what earlier ones save", () => {
  const all = stepsOf({
    steps: [
      { tools: null, expect: { $len: 2 } }, { call: "put", with: { text: "$${x}" }, save: { id: "/id" } }, { call: "get", with: { id: "${id}", key: "${env.KEY}" }, tool_error: "gone" },
      { raw: { jsonrpc: "2.0", id: "step-4", method: "logging/setLevel", params: {} } }, { read: "notes://${id}" },
    ],
    answers: { roots: [] }, leftOut: {}, uncompared: [], stale: [],
  });
  expect(all.map(({ title, method, failed }) => [title, method, failed ?? false])).toEqual([["tools/list", "tools/list", false], ["put", "tools/call", false], ["get", "tools/call", true], ["logging/setLevel", "logging/setLevel", false], ["notes://${id}", "resources/read", false]]);
  expect(all[1]!.beside).toEqual({ roots: [] });
  expect(unsaved(all)).toEqual([]);
  expect(unsaved(all.filter(({ title }) => title !== "put"))).toEqual(["id"]);
});
