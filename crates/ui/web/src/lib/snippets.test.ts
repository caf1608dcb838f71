import { expect, test } from "vitest";
import { read } from "./lossless";
import { answersYaml, canCurl, cli, curl, expectation, folderFrom, freeName, pytest, resultExpectation, rust, suite, suiteStep, suiteTest, testNames, vitest } from "./snippets";
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

test("a failure is expected in each language", () => {
  const shop = at({ command: ["x"] });
  const failed = step({ failed: true, payload: undefined });
  expect(pytest(shop, failed)).toContain('result = await mcp_client.call("echo", {"id": 1})\n    result.expect_error()');
  expect(vitest(shop, failed)).toContain(".toBeToolError()");
  expect(rust(shop, failed)).toContain('.await?.expect_error("");');
  const refused = { ...failed, refused: true };
  expect(pytest(shop, refused)).toContain("with pytest.raises(Refused):");
  expect(vitest(shop, refused)).toContain(".rejects.toBeRpcError()");
  expect(rust(shop, refused)).toContain("assert!(client.call(");
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
  expect(resultExpectation("resources/read", { contents: [{ uri: "a:b", mimeType: "image/png", blob: "AAAA" }] })).toEqual({ contents: [{ uri: "a:b", mimeType: "image/png", blob: { $len: { $gte: 1 } } }] });
  expect(resultExpectation("tools/call", { content: [{ type: "image", mimeType: "image/png", data: "AAAA" }] })).toEqual({ content: [{ type: "image", mimeType: "image/png", data: { $len: { $gte: 1 } } }] });
  expect(suiteStep({ title: "p", method: "prompts/get", params: { name: "p", arguments: {} }, result: prompt })).toContain('result: {"messages":');
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
