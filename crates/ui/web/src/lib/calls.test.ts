import { expect, test } from "vitest";
import { isFailure, placeOf, Tracker } from "./calls";
import type { Frame } from "./types";

/** The calls of lines: those of the client begin with "→". */
function calls(...lines: string[]) {
  const tracker = new Tracker(1);
  lines.forEach((line, id) => {
    const direction = line.startsWith("→") ? "to-server" : "from-server";
    tracker.push({ id, at_us: id, direction, body: { kind: "line", bytes: line.replace("→", "") } } as Frame);
  });
  return tracker.calls;
}

const REFUSED = ['→{"id":1,"method":"server/discover"}', '{"id":1,"error":{"code":-32601,"message":"Method not found"}}'];

test("a refused discovery is no failure once initialize has succeeded", () => {
  expect(calls(...REFUSED).map(isFailure)).toEqual([true]);
  const refused = [...REFUSED, '→{"id":2,"method":"initialize"}', '{"id":2,"error":{"code":-32603,"message":"no"}}'];
  expect(calls(...refused).map(isFailure)).toEqual([true, true]);
  const accepted = [...REFUSED, '→{"id":2,"method":"initialize"}', '{"id":2,"result":{}}', '→{"id":3,"method":"ping"}', '{"id":3,"error":{}}'];
  expect(calls(...accepted).map(isFailure)).toEqual([false, false, true]);
});

test("an error of OAuth in an HTTP body is no response to the request", () => {
  const tracker = new Tracker(1);
  const exchange = (id: number, body: object) => ({ id, at_us: id, direction: id === 0 ? "to-server" : "from-server", body: { exchange: 1, ...body } }) as Frame;
  tracker.push(exchange(0, { kind: "http-request", method: "POST", url: "http://h/mcp", headers: [], body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' }));
  tracker.push(exchange(1, { kind: "http-response", status: 401, headers: [] }));
  tracker.push(exchange(2, { kind: "http-body", bytes: '{"error":"invalid_token"}' }));
  tracker.push(exchange(3, { kind: "http-end", error: null }));
  expect(tracker.calls.map((call) => [call.kind, call.status])).toEqual([["request", "http-error"]]);
});

test("a call that runs knows how far it has come", () => {
  const tracker = new Tracker(1);
  let id = 0;
  const line = (direction: "to-server" | "from-server", message: unknown) => tracker.push({ id: id++, at_us: id, direction, body: { kind: "line", bytes: JSON.stringify(message) } });
  line("to-server", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "slow", _meta: { progressToken: "t" } } });
  expect(tracker.pending("tools/call", "slow")?.progress).toBeUndefined();
  line("from-server", { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "t", progress: 1, total: 4, message: "first" } });
  line("from-server", { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "t", progress: 2.5 } });
  expect(tracker.pending("tools/call", "slow")?.progress).toEqual({ done: 2.5 });
  line("from-server", { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "t", progress: "x" } });
  expect(tracker.pending("tools/call", "slow")?.progress).toEqual({ done: 2.5 });
  line("from-server", { jsonrpc: "2.0", id: 1, result: {} });
  expect(tracker.pending("tools/call", "slow")).toBeUndefined();
});

test("old calls are forgotten, but the first ones and those that wait", () => {
  const tracker = new Tracker(1);
  const line = (id: number, message: unknown) => tracker.push({ id, at_us: id, direction: "to-server", body: { kind: "line", bytes: JSON.stringify(message) } });
  line(0, { jsonrpc: "2.0", id: 0, method: "initialize" });
  for (let id = 1; id < 250; id++) line(id, { jsonrpc: "2.0", method: "notifications/x" });
  line(250, { jsonrpc: "2.0", id: "waits", method: "tools/call", params: { name: "slow" } });
  for (let id = 251; id < 1000; id++) line(id, { jsonrpc: "2.0", method: "notifications/x" });
  const kept = tracker.find(900);
  tracker.forget(800);
  expect(tracker.calls.length).toBe(200 + 1 + (999 - 800));
  expect([tracker.find(1)?.method, tracker.find(251)?.target, tracker.find(300), tracker.find(900) === kept]).toEqual(["initialize", "slow", undefined, true]);
  line(1000, { jsonrpc: "2.0", method: "notifications/y" });
  expect([tracker.calls.at(-1)?.key, placeOf(tracker.calls, 300)]).toEqual([1001, 201]);
});
