import { expect, test } from "vitest";
import { Tracker } from "./calls";
import { taskChoice } from "./tasks";
import type { Frame, Handshake } from "./types";

/** The tasks of lines: those of the client begin with "→". */
function tasks(...lines: string[]) {
  const tracker = new Tracker(1);
  lines.forEach((line, id) => {
    const direction = line.startsWith("→") ? "to-server" : "from-server";
    tracker.push({ id, at_us: id * 10, direction, body: { kind: "line", bytes: line.replace("→", "") } } as Frame);
  });
  return [...tracker.tasks.all.values()];
}

test("a task of 2025-11-25 is followed from its call to its result", () => {
  const found = tasks(
    '→{"id":1,"method":"tools/call","params":{"name":"slow","arguments":{"a":1},"task":{}}}',
    '{"id":1,"result":{"task":{"taskId":"t","status":"working","ttl":60000,"pollInterval":500,"createdAt":"2026-01-01T00:00:00Z"}}}',
    '{"method":"notifications/tasks/status","params":{"taskId":"t","status":"input_required","statusMessage":"asks"}}',
    '→{"id":2,"method":"tasks/get","params":{"taskId":"t"}}',
    '{"id":2,"result":{"taskId":"t","status":"completed"}}',
    '→{"id":3,"method":"tasks/result","params":{"taskId":"t"}}',
    '{"id":3,"result":{"content":[{"type":"text","text":"done"}]}}',
  );
  expect(found).toEqual([
    { id: "t", call: 1, tool: "slow", arguments: { a: 1 }, status: "completed", message: undefined, begun: 0, updated: 40, ended: 40, createdAt: "2026-01-01T00:00:00Z", ttlMs: 60000, pollMs: 500, polls: 1, wants: [], response: expect.stringContaining("done") as string, result: { content: [{ type: "text", text: "done" }] } },
  ]);
});

test("a task of the extension carries its questions, its result and its error", () => {
  const begun = ['→{"id":1,"method":"tools/call","params":{"name":"slow"}}', '{"id":1,"result":{"resultType":"task","taskId":"t","status":"working","ttlMs":null,"pollIntervalMs":100}}', '→{"id":2,"method":"tasks/get","params":{"taskId":"t"}}'];
  const asks = tasks(...begun, '{"id":2,"result":{"taskId":"t","status":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}}');
  expect(asks[0]).toMatchObject({ status: "input_required", wants: ["elicitation/create"], ttlMs: null, pollMs: 100 });
  expect(asks[0]!.ended).toBeUndefined();
  const failed = tasks(...begun, '{"id":2,"result":{"taskId":"t","status":"failed","error":{"code":-32603,"message":"no"}}}');
  expect(failed[0]).toMatchObject({ status: "failed", ended: 30, error: { code: -32603, message: "no" } });
});

test("what is no task makes none", () => {
  expect(tasks('→{"id":1,"method":"tools/call","params":{"name":"x"}}', '{"id":1,"result":{"content":[],"task":"later"}}')).toEqual([]);
  expect(tasks('→{"id":1,"method":"tasks/list"}', '{"id":1,"result":{"tasks":[{"taskId":1,"status":"working"},null,{"taskId":"t","status":"working"}]}}').map((task) => task.id)).toEqual(["t"]);
});

test("a tool says who decides about tasks", () => {
  const legacy = (capabilities: object, protocolVersion = "2025-11-25") => ({ era: "legacy", transport: "stdio", protocolVersion, capabilities }) as Handshake;
  const all = { tasks: { requests: { tools: { call: {} } } } };
  const tool = (taskSupport?: string) => ({ name: "x", ...(taskSupport ? { execution: { taskSupport } } : {}) });
  expect(["optional", "required", "forbidden", undefined].map((support) => taskChoice(tool(support), legacy(all)))).toEqual(["client", "always", "never", "never"]);
  expect(taskChoice(tool("optional"), legacy({ tasks: {} }))).toBe("never");
  expect(taskChoice(tool("optional"), legacy(all, "2025-06-18"))).toBe("never");
  const modern = { era: "modern", transport: "stdio", protocolVersion: "2026-07-28", capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } as unknown as Handshake;
  expect(taskChoice(tool(), modern)).toBe("server");
  expect(taskChoice(tool(), { ...modern, capabilities: {} })).toBe("never");
});
