import { expect, test } from "vitest";
import { read } from "./lossless";
import { answersYaml, canCurl, cli, curl, expectation, failedWith, folderFrom, freeName, pytest, resultExpectation, rust, saysMore, suite, suiteStep, suiteTest, testNames, vitest } from "./snippets";
import type { Step } from "./store";
import type { Connection, Handshake, JsonObject, Spec } from "./types";

const EMPTY: Spec = { name: "", server: null, config: null, command: [], url: null, env: [], headers: [], withoutEnv: [], withoutHeaders: [], clientId: null, clientSecret: null, scope: null, cwd: null, roots: [], transport: null, era: null, revision: null };
const at = (spec: Partial<Spec>, resolved?: Partial<Spec>): Connection =>
  ({ id: 1, title: "x", spec: { ...EMPTY, ...spec }, ...(resolved ? { resolved: { ...EMPTY, ...resolved } } : {}), status: "open", diagnostic: null, sessions: [] });
const step = (facts: Partial<Step> = {}): Step => ({ title: "echo", method: "tools/call", params: { name: "echo", arguments: { id: 1 } }, payload: { ok: true }, ...facts });
const first = (text: string) => text.split("\n\n")[0];

test("a suite starts the server where `mcproof ui` did", () => {
  const shop = at({ command: ["node", "server.js"] });
  expect(first(suite(shop, [step()], "a", "shop.mcproof.yaml"))).toBe('server:\n  stdio: { command: "node server.js" }');
  expect(first(suite(shop, [step()], "a", "tests/shop.mcproof.yaml"))).toBe('server:\n  stdio: { command: "node server.js", cwd: ".." }');
  expect([folderFrom("a/b/c.yaml", null), folderFrom("./a.yaml", "sub"), folderFrom("a/b.yaml", "sub/x"), folderFrom("a/b.yaml", "/abs"), folderFrom("a.yaml", null)]).toEqual(["../..", "sub", "../sub/x", "/abs", undefined]);
});

test("a server of a configuration file is what the file says, without its secrets", () => {
  const shop = at({ server: "shop", config: ".mcp.json" }, { command: ["python3", "pair.py"], env: [["API_KEY", ""]] });
  expect(first(suite(shop, [step()]))).toBe('server:\n  stdio: { command: "python3 pair.py", env: { API_KEY: "${env.API_KEY}" } }');
  expect(pytest(shop, step())).toContain('return {"command": ["python3", "pair.py"], "env": {"API_KEY": os.environ["API_KEY"]}}');
  expect(vitest(shop, step())).toContain('testClient({ command: ["python3","pair.py"], env: { "API_KEY": process.env["API_KEY"]! } })');
  expect(rust(shop, step())).toContain('Program::new(["python3", "pair.py"])\n        .env("API_KEY", std::env::var("API_KEY").expect("API_KEY is set"))');
  expect(cli(shop, step())).toBe("mcproof call shop echo id:=1 --config .mcp.json");
  const remote = at({ server: "far" }, { url: "https://example.com/mcp", headers: [["X-Key", ""]], transport: "http" });
  expect(first(suite(remote, [step()]))).toBe('server:\n  http: { url: "https://example.com/mcp", headers: { X-Key: "${env.X_KEY}" } }');
  expect(pytest(remote, step())).toContain('{"url": "https://example.com/mcp", "headers": {"X-Key": os.environ["X_KEY"]}}');
  expect(canCurl(remote, null)).toBe(true);
});

test("a failure is expected in each language, and no other one", () => {
  const shop = at({ command: ["x"] });
  const failed = step({ failed: true, payload: undefined, error: { text: "no such id (nope)" } });
  expect(suiteStep(failed)).toContain('tool_error: "no such id (nope)"');
  expect(pytest(shop, failed)).toContain('result = await mcp_client.call("echo", {"id": 1})\n    result.expect_error("/no such id \\\\(nope\\\\)/")');
  expect(vitest(shop, failed)).toContain(".toBeToolError(/no such id \\(nope\\)/)");
  expect(rust(shop, failed)).toContain('assert!(result.is_error());\n    result.expect_error("no such id (nope)");');
  const refused = step({ failed: true, refused: true, payload: undefined, error: { code: -32042, text: "sign in" } });
  expect(suiteStep(refused)).toContain('rpc_error: {"code":-32042,"message":"sign in"}');
  expect(pytest(shop, refused)).toContain('with pytest.raises(Refused) as refused:\n        await mcp_client.call("echo", {"id": 1})\n    assert refused.value.code == -32042\n    assert "sign in" in refused.value.error["message"]');
  expect(vitest(shop, refused)).toContain('.rejects.toBeRpcError({\n    "code": -32042,\n    "message": "sign in"\n  })');
  expect(rust(shop, refused)).toContain('is_some_and(|error| error.code == -32042));\n    result.expect_error("sign in");');
  const partly = { ...refused, error: { code: -1, text: "no such id", partly: true } };
  expect(suiteStep(partly)).toContain('rpc_error: {"code":-1,"message":{"$regex":"no such id"}}');
  // Of a step that an earlier version has kept, nothing more is known.
  expect(suiteStep({ ...failed, error: undefined })).toContain("tool_error: true");
  expect(suiteStep({ ...refused, error: undefined })).toContain("rpc_error: true");
  for (const one of [failed, refused, partly, { ...failed, error: undefined }]) expect(suite(shop, [one])).not.toContain("fails:");
});

test.each([
  ["no such id nope", { text: "no such id nope" }],
  ["\n  first line \nsecond", { text: "first line", partly: true }],
  ["no such id fefe4abe-28cc-4c8a-9d1f-6a8f0b6f3a11", { text: "no such id", partly: true }],
  ["at 2026-11-29T01:02:03Z it ended", {}],
  ["12:30 was too late for echo", { text: "echo", partly: true }],
  ["timed out after 1200 ms", { text: "timed out after", partly: true }],
  ["no", { text: "no" }],
  ["/a pattern/", {}],
  ["", {}],
  [undefined, {}],
  ["x".repeat(300), { text: "x".repeat(100), partly: true }],
])("of the error %j stays what is the same next time", (text, expected) => {
  expect(failedWith(text, "echo")).toEqual(expected);
  expect(failedWith(text, "echo", -32602)).toEqual({ code: -32602, ...expected });
});

test("steps of the program stand in a suite as it has written them", () => {
  const written = { call: "put", with: { text: "$${a}" }, expect: { id: { $uuid: true } }, save: { id: "/id" } };
  const shop = { ...at({ command: ["x"] }), sessions: [{ id: 1, openedMs: 0, handshake: { era: "legacy" } as Handshake }] };
  const one = step({ written, beside: { roots: [] } });
  expect(suiteStep(one, "")).toBe('- call: "put"\n  with: {"text":"$${a}"}\n  expect: {"id":{"$uuid":true}}\n  save: {"id":"/id"}');
  expect(suite(shop, [one])).toContain('  stdio: { command: "x" }\n  era: legacy\n');
  expect(suite(shop, [one])).toContain('    answers: {"roots":[]}\n    steps:');
  expect(suite(shop, [step()])).not.toContain("era:");
  expect(suiteStep(step({ written: { ...written, with: { text: "[redacted]" } } }))).toContain("# An argument was redacted");
});

test("large responses are compared as a whole, and very large ones by their shape", () => {
  const list = Array.from({ length: 100 }, (_, number) => ({ number, text: "x".repeat(400) }));
  expect(expectation(list)).toEqual(list);
  expect(expectation([...list, ...list])).toEqual({ $type: "array" });
});

test("what was redacted may be any text", () => {
  expect(expectation({ a: "port [redacted].", b: "[redacted]", "k[redacted]": 1, c: "x" })).toEqual({ a: { $regex: "^port (?s:.*)\\.$" }, b: { $type: "string" }, c: "x" });
  const text = suiteStep(step({ payload: "port [redacted]" }));
  expect(text).toContain("# What was redacted may be any text.");
  expect(text).toContain('expect: {"$regex":"^port (?s:.*)$"}');
  expect(text.split("\n").filter((line) => !line.includes("#")).join()).not.toContain("[redacted]");
  expect(suiteStep(step({ params: { name: "echo", arguments: { key: "[redacted]" } } }))).toContain("# An argument was redacted");
});

test("prompts, resources and media are expected as they came", () => {
  const prompt = resultExpectation("prompts/get", { messages: [{ role: "user", content: { type: "text", text: "hi" } }] });
  expect(prompt).toEqual({ messages: [{ role: "user", content: { type: "text", text: "hi" } }] });
  expect(resultExpectation("resources/read", { contents: [{ uri: "a:b", mimeType: "image/png", blob: "AAAA" }] })).toEqual({ contents: [{ uri: "a:b", mimeType: "image/png", blob: "AAAA" }] });
  expect(resultExpectation("tools/call", { content: [{ type: "image", mimeType: "image/png", data: "AAAA" }] })).toEqual({ content: [{ type: "image", mimeType: "image/png", data: "AAAA" }] });
  expect(resultExpectation("tools/call", { content: [{ type: "image", mimeType: "image/png", data: "A".repeat(300_000) }] })).toEqual({ content: [{ type: "image", mimeType: "image/png", data: { $len: 300_000 } }] });
  expect(suiteStep({ title: "p", method: "prompts/get", params: { name: "p", arguments: {} }, result: prompt })).toContain('result: {"messages":');
});

test("a result that is more than its payload is expected with all that it has", () => {
  const both: JsonObject = { content: [{ type: "text", text: "a" }, { type: "image", mimeType: "image/png", data: "AAAA" }], structuredContent: { a: 1 } };
  expect([saysMore(both), saysMore({ content: [{ type: "text", text: "a" }] }), saysMore({})]).toEqual([true, false, false]);
  expect(resultExpectation("tools/call", both)).toEqual(both);
});

test("long numbers stay in copies, but for JavaScript", () => {
  const long = step({ params: read('{"name":"echo","arguments":{"id":9007199254740993}}') as JsonObject, payload: read('{"id":9007199254740993,"small":3000000000}') });
  const shop = at({ command: ["x"] });
  expect(suite(shop, [long])).toContain('with: {"id":9007199254740993}\n        expect: {"id":9007199254740993,"small":3000000000}');
  expect(pytest(shop, long)).toContain('{"id": 9007199254740993}');
  expect(rust(shop, long)).toContain('"id": 9007199254740993_i64');
  expect(rust(shop, long)).toContain('"small": 3000000000_i64');
  expect(vitest(shop, long)).toContain("JavaScript rounds the long number");
  expect(cli(shop, long)).toContain("id:=9007199254740993");
});

test("texts are texts of Rust", () => {
  expect(rust(at({ command: ["x"] }), step({ payload: "a\u0001\b\\u0001\"\n" }))).toContain('json!("a\\u{0001}\\u{8}\\\\u0001\\"\\n")');
});

test("curl begins a session in the legacy era only", () => {
  const url = at({ url: "http://127.0.0.1:1/mcp", headers: [["X-Key", ""]] });
  const shake = (era: string, protocolVersion: string, transport = "http") => ({ era, transport, protocolVersion, capabilities: {} }) as Handshake;
  const legacy = curl(url, shake("legacy", "2025-06-18"), "tools/call", step().params)!;
  expect(legacy.indexOf('"method":"initialize"')).toBeLessThan(legacy.indexOf('"method":"tools/call"'));
  expect(legacy.match(/X-Key: \$X_KEY/g)).toHaveLength(3);
  expect(curl(url, shake("modern", "2026-07-28"), "tools/call", step().params)).not.toContain("SESSION");
  expect(curl(url, shake("legacy", "2024-11-05", "sse"), "tools/call", step().params)).toBeNull();
});

test("what the user answered is in each copy", () => {
  const shop = at({ command: ["x"] });
  const asked = step({ answers: { elicitation: { name: "Bob" }, sampling: "hi" } });
  expect(suiteStep(asked)).toContain('answers: {"elicitation":{"name":"Bob"},"sampling":"hi"}');
  expect(pytest(shop, asked)).toContain('@pytest.mark.mcp(elicitation={"name": "Bob"}, sampling="hi")\nasync def');
  expect(vitest(shop, asked)).toContain('testClient(["x"], { answers: {\n    "elicitation": {\n');
  expect(rust(shop, asked)).toContain('use mcproof::{Answers, Client, ConnectOptions, Elicitation, Failure, Program, Sampling, Transport};');
  expect(rust(shop, asked)).toContain('sampling: Some(Sampling::Text("hi".to_owned())), ..Answers::default() };\n    Client::connect(&target,');
  expect(rust(shop, step())).toContain("use mcproof::{Client, Failure, Program, Transport};");
  expect(rust(at({ url: "http://h/mcp" }), asked)).toContain("// The server asked the client meanwhile (elicitation, sampling): give");
  expect(cli(shop, asked)).toMatch(/^# The server asked .*\nmcproof call echo/);
  expect(suiteStep(step({ answers: { elicitation: "decline", unlike: ["elicitation"] } }))).toMatch(/# The server asked for elicitation more than once.*\n +answers: \{"elicitation":"decline"\}/);
  expect(rust(shop, step({ answers: { elicitation: "decline", unlike: ["elicitation"] } })).match(/more than once/g)).toHaveLength(1);
  expect(suiteStep(step({ answers: { elicitation: { key: "[redacted]" } } }))).toContain("# A response was redacted");
});

test("a name is free or is made so", () => {
  const names = testNames('server: { stdio: x }\ntests:\n  - name: next works # here\n    steps: []\n  - name: "a \\"b\\" $${c}"\n  - name: \'it\'\'s\'\n  - steps: []\n    name: late\n');
  expect(names).toEqual(["next works", 'a "b" ${c}', "it's", "late"]);
  expect([freeName("next works", names), freeName("new", names), freeName("x", ["x", "x 2"])]).toEqual(["next works 2", "new", "x 3"]);
});

test("policies are the answers of the test, as they were written", () => {
  const of = (text: string, answers: object) => ({ policy: { text, answers } }) as Parameters<typeof answersYaml>[0];
  expect(answersYaml({})).toEqual([]);
  expect(answersYaml(of("", {}))).toEqual([]);
  expect(answersYaml(of("elicitation: accept", { elicitation: "accept" }))).toEqual(['answers: {"elicitation":"accept"}']);
  expect(answersYaml(of("\n# why\nelicitation: accept\n\nsampling: hi\n", { elicitation: "accept", sampling: "hi" }))).toEqual(["answers:", "  # why", "  elicitation: accept", "", "  sampling: hi"]);
  expect(answersYaml(of("---\nelicitation: accept\n", { elicitation: "accept" }))).toEqual(['answers: {"elicitation":"accept"}']);
  const at = of("elicitation: accept\nroots: [file:///a]", { elicitation: "accept", roots: ["file:///a"] });
  const same = step({ answers: { elicitation: "accept", roots: ["file:///a"] } });
  const other = step({ answers: { elicitation: "decline", roots: ["file:///a"] } });
  expect(suiteTest(at, [same, other], "t").split("\n").slice(0, 5)).toEqual(["- name: t", "  answers:", "    elicitation: accept", "    roots: [file:///a]", "  steps:"]);
  expect(suiteTest(at, [same], "t")).not.toContain("answers: {");
  expect(suiteTest(at, [other], "t")).toContain('answers: {"elicitation":"decline"}');
});
