import { expect, test } from "vitest";
import { secretsIn } from "./schema";
import { inSuite, isMasked, masked, maskedStep, withoutTexts } from "./secrets";
import { cli, curl, pytest, rust, suite, suiteStep, vitest } from "./snippets";
import type { Step } from "./store";
import type { Connection, Handshake, Json, JsonObject, Spec } from "./types";

const SCHEMA: JsonObject = {
  type: "object",
  properties: {
    user: { type: "string" }, secret: { type: "string", format: "password" }, pin: { $ref: "#/$defs/pin" },
    deep: { type: "object", properties: { "api key": { type: "string", writeOnly: true } }, patternProperties: { "^x-": { format: "password" } } },
    list: { type: "array", items: { type: "string", format: "password" } }, pair: { prefixItems: [{}, { format: "password" }] },
    either: { anyOf: [{ type: "object", properties: { token: { format: "password" } } }, { type: "null" }] },
  },
  $defs: { pin: { type: "integer", writeOnly: true } },
};
const shown = (value: Json) => JSON.parse(inSuite(JSON.stringify(masked(value, SCHEMA)))) as Json;

test("a variable stands for each password", () => {
  expect(shown({ user: "ann", secret: "hunter22", pin: 1234 })).toEqual({ user: "ann", secret: "${env.SECRET}", pin: "${env.PIN}" });
  expect(shown({ deep: { "api key": "k", "x-key": "l", plain: 1 }, list: ["a", "b"], pair: ["open", "closed"], either: { token: "t" } })).toEqual({
    deep: { "api key": "${env.API_KEY}", "x-key": "${env.X_KEY}", plain: 1 }, list: ["${env.LIST_0}", "${env.LIST_1}"], pair: ["open", "${env.PAIR_1}"], either: { token: "${env.TOKEN}" },
  });
  // Another value is another variable, and the same one is the same.
  expect([shown({ secret: "wrong" }), shown({ secret: "hunter22" }), shown({ secret: "[redacted]" })]).toEqual([{ secret: "${env.SECRET_2}" }, { secret: "${env.SECRET}" }, { secret: "${env.SECRET}" }]);
  expect(shown({ secret: "", user: "hunter22" })).toEqual({ secret: "", user: "hunter22" });
  const once = masked({ secret: "hunter22" }, SCHEMA);
  expect(masked(once, SCHEMA)).toEqual(once);
  expect([isMasked(once), isMasked({ secret: "x" })]).toEqual([true, false]);
  expect(maskedStep({ call: "login", with: { secret: "[redacted]" } }, SCHEMA).with).toEqual(once);
});

test("what is secret is told to the program before it is sent", () => {
  expect(secretsIn({ user: "ann", secret: "hunter22", pin: 1234, list: ["a"] }, SCHEMA)).toEqual(["hunter22", "1234", "a"]);
  expect(secretsIn({ user: "ann" }, SCHEMA)).toEqual([]);
});

test("a server that says a password again is not quoted", () => {
  expect(withoutTexts({ said: "it is hunter22!", pin: "12", other: "1234", list: ["hunter22"] }, ["hunter22", "12"])).toEqual({ said: "it is [redacted]!", pin: "[redacted]", other: "1234", list: ["[redacted]"] });
  expect(withoutTexts(undefined, ["x"])).toBeUndefined();
});

test("copies take passwords from the environment", () => {
  const spec: Spec = { name: "", server: null, config: null, command: ["x"], url: null, env: [], headers: [], withoutEnv: [], withoutHeaders: [], clientId: null, clientSecret: null, scope: null, cwd: null, roots: [], transport: null, era: null, revision: null };
  const at: Connection = { id: 1, title: "x", spec, status: "open", diagnostic: null, sessions: [] };
  const step: Step = { title: "login", method: "tools/call", params: { name: "login", arguments: masked({ user: "ann", secret: "hunter22" }, SCHEMA) }, payload: "ok" };
  expect(suiteStep(step)).toContain('with: {"user":"ann","secret":"${env.SECRET}"}');
  expect(cli(at, step)).toBe(`mcproof call login user=ann 'secret='"$SECRET"'' -- x`);
  expect(pytest(at, step)).toMatch(/^import os\n\nimport pytest\n/);
  expect(pytest(at, step)).toContain('{"user": "ann", "secret": os.environ["SECRET"]}');
  expect(vitest(at, step)).toContain('"secret": process.env["SECRET"]!');
  expect(rust(at, step)).toContain('"secret": std::env::var("SECRET").expect("SECRET is set")');
  const url = { ...at, spec: { ...spec, command: [], url: "http://h/mcp" } };
  const copied = curl(url, { era: "legacy", transport: "http", protocolVersion: "2025-06-18", capabilities: {} } as Handshake, "tools/call", step.params)!;
  expect(copied).toContain(`"secret":"'"$SECRET"'"`);
  for (const text of [suite(at, [step]), cli(at, step), pytest(at, step), vitest(at, step), rust(at, step), copied]) expect(text).not.toMatch(/hunter22|\ue001/);
});
