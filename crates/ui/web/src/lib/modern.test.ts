import { expect, test } from "vitest";
import { levelIn, listensTo, withLevel } from "./modern";

test("a level is said once, and not against what was typed", () => {
  const params = withLevel({ name: "echo", _meta: { progressToken: 1 } }, "debug");
  expect(params).toEqual({ name: "echo", _meta: { "io.modelcontextprotocol/logLevel": "debug", progressToken: 1 } });
  expect(levelIn({ method: "tools/call", params })).toBe("debug");
  expect(levelIn({ params: withLevel(withLevel(undefined, "error"), "debug") })).toBe("error");
  expect(levelIn({ params: { _meta: {} } })).toBeUndefined();
});

test("a stream is told from that of another resource", () => {
  const request = '{"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a://b"]}}}';
  expect([listensTo(request, "a://b"), listensTo(request, "a://c"), listensTo('{"params":{"notifications":{"toolsListChanged":true}}}', "a://b")]).toEqual([true, false, false]);
});
