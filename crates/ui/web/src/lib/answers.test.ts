import { expect, test } from "vitest";
import { answersOf } from "./answers";
import { Tracker } from "./calls";
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
const CALL = '→{"id":1,"method":"tools/call","params":{"name":"t"}}';
const END = '{"id":1,"result":{"content":[]}}';
const ask = (id: number, method: string, response: string) => [`{"id":${id},"method":"${method}"}`, `→{"id":${id},${response}}`];

test.each([
  ["values", [...ask(1, "elicitation/create", '"result":{"action":"accept","content":{"name":"Bob"}}')], { elicitation: { name: "Bob" } }],
  ["two forms", [...ask(1, "elicitation/create", '"result":{"action":"accept","content":{"a":1}}'), ...ask(2, "elicitation/create", '"result":{"action":"accept","content":{"b":2}}')], { elicitation: { a: 1, b: 2 } }],
  ["two minds", [...ask(1, "elicitation/create", '"result":{"action":"accept"}'), ...ask(2, "elicitation/create", '"result":{"action":"decline"}')], { elicitation: "decline", unlike: ["elicitation"] }],
  ["a model", [...ask(1, "sampling/createMessage", '"result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"mcproof","stopReason":"endTurn"}')], { sampling: "hi" }],
  ["another model", [...ask(1, "sampling/createMessage", '"result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}')], { sampling: { role: "assistant", content: { type: "text", text: "hi" }, model: "m" } }],
  ["a rejection", [...ask(1, "sampling/createMessage", '"error":{"code":-1,"message":"no"}')], { sampling: "reject" }],
  ["roots", [...ask(1, "roots/list", '"result":{"roots":[{"uri":"file:///a"},{"uri":"file:///b","name":"b"}]}')], { roots: ["file:///a", { uri: "file:///b", name: "b" }] }],
  ["nothing", [], undefined],
])("%s", (_, between, expected) => {
  expect(answersOf(calls(CALL, ...between, END), calls(CALL, ...between, END)[0]!)).toEqual(expected);
});

test("responses to what a result asked for", () => {
  const all = calls(
    CALL, '{"id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}}',
    '→{"id":2,"method":"tools/call","params":{"name":"t","inputResponses":{"a":{"action":"accept","content":{"x":1}}}}}', '{"id":2,"result":{"resultType":"input_required","inputRequests":{"b":{"method":"sampling/createMessage"}}}}',
    '→{"id":3,"method":"tools/call","params":{"name":"t","inputResponses":{"b":{"role":"assistant","content":{"type":"text","text":"y"},"model":"mcproof","stopReason":"endTurn"}}}}', '{"id":3,"result":{"content":[]}}',
  );
  expect(answersOf(all, all[2]!)).toEqual({ elicitation: { x: 1 }, sampling: "y" });
});

test("what a task asked for, and no other call", () => {
  const all = calls(CALL, '{"id":1,"result":{"task":{"taskId":"k","status":"working"}}}', '→{"id":2,"method":"tasks/result","params":{"taskId":"k"}}', '{"id":9,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"k"}}}}', '→{"id":9,"result":{"action":"cancel"}}', '{"id":2,"result":{"content":[]}}');
  expect(answersOf(all, all[0]!, "k")).toEqual({ elicitation: "cancel" });
  expect(answersOf(all, all[0]!)).toBeUndefined();
});
