import { expect, test } from "vitest";
import { answersOf, askedDuring } from "./answers";
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

/** A frame of mcproof's own between the lines. */
function withNote(lines: string[], at: number, ...notes: string[]) {
  const tracker = new Tracker(1);
  lines.forEach((line, id) => {
    if (id === at) notes.forEach((text, index) => tracker.push({ id: 100 + index, at_us: id, direction: "local", body: { kind: "note", text } }));
    const direction = line.startsWith("→") ? "to-server" : "from-server";
    tracker.push({ id, at_us: id, direction, body: { kind: "line", bytes: line.replace("→", "") } } as Frame);
  });
  return tracker.calls;
}

test("what a policy has answered is written as the policy", () => {
  const all = withNote([CALL, ...ask(7, "elicitation/create", '"result":{"action":"accept","content":{"a":1,"b":2}}'), END], 2, 'elicitation/create is answered by policy: "accept"');
  expect(all[1]!.policies).toEqual([["elicitation/create", "accept"]]);
  expect(answersOf(all, all[0]!)).toEqual({ elicitation: "accept" });
});

test("a note about something else marks nothing", () => {
  const lines = [CALL, ...ask(7, "elicitation/create", '"result":{"action":"decline"}'), END];
  for (const note of ["the server no longer knows the session: initializing again", 'sampling/createMessage is answered by policy: "hi"']) expect(withNote(lines, 2, note).some((call) => call.policies)).toBe(false);
});

test("a policy answers what a result asks for", () => {
  const lines = [
    CALL, '{"id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"},"b":{"method":"sampling/createMessage"}}}}',
    '→{"id":2,"method":"tools/call","params":{"name":"t","inputResponses":{"a":{"action":"accept","content":{"x":1}},"b":{"role":"assistant","content":{"type":"text","text":"y"},"model":"m"}}}}', '{"id":2,"result":{"content":[]}}',
  ];
  const all = withNote(lines, 2, 'elicitation/create is answered by policy: {"x":1}');
  expect(all[0]!.policies).toEqual([["elicitation/create", { x: 1 }]]);
  expect(answersOf(all, all[1]!)).toEqual({ elicitation: { x: 1 }, sampling: { role: "assistant", content: { type: "text", text: "y" }, model: "m" } });
  // Two questions, and one policy: nobody knows which of them the user has answered.
  const two = withNote([CALL, lines[1]!.replace("sampling/createMessage", "elicitation/create"), '→{"id":2,"method":"tools/call","params":{"name":"t","inputResponses":{"a":{"action":"accept","content":{"x":1}},"b":{"action":"accept","content":{"z":1}}}}}', '{"id":2,"result":{"content":[]}}'], 2, 'elicitation/create is answered by policy: "accept"');
  expect(answersOf(two, two[1]!)).toEqual({ elicitation: { x: 1, z: 1 } });
});

test("a question is of the call during which it came", () => {
  const other = '→{"id":9,"method":"tools/call","params":{"name":"other"}}';
  const form = '"method":"elicitation/create","params":{"message":"Who?"}';
  const who = { method: "elicitation/create", params: { message: "Who?" } };
  expect(askedDuring(calls(CALL, `{"id":1,${form}}`), who)?.target).toBe("t");
  expect(askedDuring(calls(CALL, `{"id":1,${form}}`), { ...who, params: { message: "What?" } })).toBeUndefined();
  expect(askedDuring(calls(`{"id":1,${form}}`), who), "no call runs").toBeUndefined();
  expect(askedDuring(calls(CALL, END, other, `{"id":1,${form}}`), who)?.target).toBe("other");
  expect(askedDuring(calls(CALL, `{"id":1,"result":{"resultType":"input_required","inputRequests":{"a":{${form}}}}}`), who)?.target).toBe("t");
});

test("a password of a form is a variable", () => {
  const form = '"method":"elicitation/create","params":{"requestedSchema":{"type":"object","properties":{"pin":{"type":"string","format":"password"}}}}';
  const all = calls(CALL, `{"id":1,${form}}`, '→{"id":1,"result":{"action":"accept","content":{"pin":"9876"}}}', END);
  expect(JSON.stringify(answersOf(all, all[0]!))).not.toContain("9876");
});
