// A call as text that does the same elsewhere: command line, suite, curl, test libraries.
import { isObject } from "./calls";
import { LongNumber, read, write } from "./lossless";
import type { Connection, Handshake, Json, JsonObject } from "./types";
import type { Step } from "./store";

/** A word of a POSIX shell. */
export function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** How the server is named on a command line: what stands before the request, and after it. Values of variables and headers are left out. */
function target({ spec }: Connection): { first: string[]; last: string[] } {
  const env = spec.env.flatMap(([name]) => ["-e", `${name}="$${name}"`]);
  const headers = spec.headers.flatMap(([name]) => ["--header", `"${name}: $${name.toUpperCase().replaceAll(/\W/g, "_")}"`]);
  const first: string[] = [];
  if (spec.url) first.push(word(spec.url));
  else if (spec.server) first.push(word(spec.server));
  const last = [...env, ...headers];
  if (spec.config) last.push("--config", word(spec.config));
  if (spec.cwd) last.push("--cwd", word(spec.cwd));
  if (spec.era && spec.era !== "auto") last.push("--era", spec.era);
  if (spec.transport && spec.transport !== "auto") last.push("--transport", spec.transport);
  if (spec.command.length > 0) last.push("--", ...spec.command.map(word));
  return { first, last };
}

export function cli(connection: Connection, method: string, params: JsonObject): string {
  const { first, last } = target(connection);
  const args = isObject(params.arguments) ? params.arguments : {};
  const pairs = Object.entries(args).map(([name, value]) =>
    word(typeof value === "string" && !/^[\s[{"\d-]|^(true|false|null)$/.test(value) ? `${name}=${value}` : `${name}:=${write(value)}`));
  if (method === "tools/call") return ["mcproof call", ...first, word(String(params.name)), ...pairs, ...last].join(" ");
  if (method === "prompts/get")
    return ["mcproof prompt", ...first, word(String(params.name)), ...Object.entries(args).map(([name, value]) => word(`${name}=${String(value)}`)), ...last].join(" ");
  if (method === "resources/read") return ["mcproof read", ...first, word(String(params.uri)), ...last].join(" ");
  return ["mcproof inspect", ...first, "--method", word(method), ...last].join(" ");
}

/** JSON on one line, as YAML takes it too. In suites `$` begins a variable, which is written twice to stand for itself. */
function flow(value: Json): string {
  return write(value).replaceAll("${", () => "$${");
}

function scalar(text: string): string {
  return /^[A-Za-z][\w -]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : flow(text);
}

/** What a response must be: its shape, with values that stay the same as they are and the rest by type. */
export function expectation(payload: Json, depth = 0): Json {
  if (Array.isArray(payload)) return depth > 3 || payload.length > 8 ? { $type: "array" } : payload.map((one) => expectation(one, depth + 1));
  if (isObject(payload)) {
    if (depth > 4) return { $type: "object" };
    return Object.fromEntries(Object.entries(payload).slice(0, 40).map(([name, value]) => [name.startsWith("$") ? `$${name}` : name, expectation(value, depth + 1)]));
  }
  if (typeof payload === "string") {
    if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(payload)) return { $uuid: true };
    if (/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(payload)) return { $datetime: true };
    if (payload.length > 300) return { $type: "string" };
  }
  return payload;
}

export function suiteStep(step: Step, indent = "      "): string {
  const { method, params } = step;
  const lines: string[] = [];
  const args = isObject(params.arguments) ? params.arguments : {};
  if (method === "tools/call") lines.push(`call: ${scalar(String(params.name))}`, `with: ${flow(args)}`);
  else if (method === "resources/read") lines.push(`read: ${flow(String(params.uri))}`);
  else if (method === "prompts/get") lines.push(`prompt: ${scalar(String(params.name))}`, `with: ${flow(args)}`);
  else lines.push(`raw: ${flow({ jsonrpc: "2.0", id: 1, method, params })}`);
  if (step.task) lines.push("task: true");
  if (step.failed) lines.push("fails: true");
  else if (step.payload !== undefined && method === "tools/call") {
    const wanted = expectation(step.payload);
    lines.push(`expect: ${typeof wanted === "string" ? flow({ $text: wanted }) : flow(wanted)}`);
  }
  return lines.map((line, index) => indent + (index === 0 ? "- " : "  ") + line).join("\n");
}

function serverYaml({ spec }: Connection): string {
  const env = spec.env.length > 0 ? `, env: { ${spec.env.map(([name]) => `${name}: "\${env.${name}}"`).join(", ")} }` : "";
  const command = JSON.stringify(spec.command.map(word).join(" "));
  if (spec.url && spec.command.length > 0) return `server:\n  http: { command: ${command}, url: ${JSON.stringify(spec.url)}${env} }`;
  if (spec.url) {
    const headers = spec.headers.length > 0 ? `, headers: { ${spec.headers.map(([name]) => `${name}: "\${env.${name.toUpperCase().replaceAll(/\W/g, "_")}}"`).join(", ")} }` : "";
    return `server:\n  ${spec.transport === "sse" ? "sse" : "http"}: { url: ${JSON.stringify(spec.url)}${headers} }`;
  }
  if (spec.command.length > 0) return `server:\n  stdio: { command: ${command}${env} }`;
  return `# Describe the server here: \`mcproof init ${spec.server ?? ""}\` shows how.\nserver:\n  stdio: { command: "…" }`;
}

/** A test as an item of the list `tests:` of a suite. */
export function suiteTest(steps: Step[], title: string): string {
  return `- name: ${scalar(title)}\n  steps:\n${steps.map((step) => suiteStep(step, "    ")).join("\n")}`;
}

export function suite(connection: Connection, steps: Step[], title = "what was tried in the inspector"): string {
  return `${serverYaml(connection)}\n\ntests:\n  - name: ${scalar(title)}\n    steps:\n${steps.map((step) => suiteStep(step)).join("\n")}\n`;
}

export function curl(connection: Connection, handshake: Handshake | null, method: string, params: JsonObject): string | null {
  if (!connection.spec.url) return null;
  const version = handshake?.protocolVersion ?? "2025-11-25";
  const modern = handshake?.era === "modern";
  const body = { jsonrpc: "2.0", id: 1, method, params: modern ? { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientInfo": { name: "curl", version: "1" }, "io.modelcontextprotocol/clientCapabilities": {} } } : params };
  const headers = ["content-type: application/json", "accept: application/json, text/event-stream", `mcp-protocol-version: ${version}`];
  if (modern) {
    headers.push(`mcp-method: ${method}`);
    const name = params.name ?? params.uri;
    if (typeof name === "string") headers.push(`mcp-name: ${name}`);
  } else headers.push("mcp-session-id: $SESSION");
  for (const [name] of connection.spec.headers) headers.push(`${name}: $${name.toUpperCase().replaceAll(/\W/g, "_")}`);
  const quoted = (header: string) => (header.includes(": $") ? `"${header}"` : word(header));
  return `curl -sS ${word(connection.spec.url)} \\\n${headers.map((header) => `  -H ${quoted(header)} \\\n`).join("")}  -d ${word(write(body))}`;
}

const indent = (value: Json, by: string) => write(value, 2).split("\n").join(`\n${by}`);

function python(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (isObject(value)) return `{${Object.entries(value).map(([name, value]) => `${JSON.stringify(name)}: ${python(value)}`).join(", ")}}`;
  return write(value);
}

const identifier = (text: string) => text.replaceAll(/\W+/g, "_").replace(/^(\d)/, "_$1").toLowerCase() || "call";

export function pytest(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const server = connection.spec.url ? JSON.stringify(connection.spec.url) : python(connection.spec.command);
  const check = step.failed ? "    # it failed here" : step.payload !== undefined ? `    result.expect(${python(expectation(step.payload))})` : "    assert not result.is_error";
  return `import pytest

@pytest.fixture
def mcp_server():
    return ${server}

async def test_${identifier(String(step.params.name))}(mcp_client):
    result = await mcp_client.call_tool(${JSON.stringify(String(step.params.name))}, **${python(args)})
${check}
`;
}

export function vitest(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const server = connection.spec.url ? JSON.stringify(connection.spec.url) : JSON.stringify(connection.spec.command);
  return `import { testClient } from "mcproof/vitest";
import { expect, it } from "vitest";

it(${JSON.stringify(String(step.params.name))}, async () => {
  await using client = await testClient(${server});
  const result = await client.call(${JSON.stringify(String(step.params.name))}, ${indent(args, "  ")});
  await expect(result).toMatchExpectation(${indent(expectation(step.payload ?? {}), "  ")});
});
`;
}

export function rust(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const [program, ...rest] = connection.spec.command;
  const server = connection.spec.url ? `mcproof::Client::connect(${JSON.stringify(connection.spec.url)}).await` : `Program::new(${JSON.stringify([program ?? "server", ...rest])}).over(transport).await`;
  return `use mcproof::{Client, Failure, Program, Transport};
use serde_json::json;

async fn server(transport: Transport) -> Result<Client, Failure> {
    ${server}
}

#[mcproof::test(server = server, transports = [${connection.spec.url ? "http" : "stdio"}])]
async fn ${identifier(String(step.params.name))}(client: &Client) -> Result<(), Failure> {
    let result = client.call(${JSON.stringify(String(step.params.name))}, json!(${indent(args, "    ")})).await?;
    ${step.failed ? "// It failed here." : `result.expect(json!(${indent(expectation(step.payload ?? {}), "    ")}));`}
    Ok(())
}
`;
}

/** The payload of a result, as suites match it: structured content, else the text as JSON, else the text. */
export function payloadOf(result: JsonObject): Json | undefined {
  if (isObject(result.structuredContent)) return result.structuredContent;
  const blocks = Array.isArray(result.content) ? result.content.filter(isObject) : [];
  const texts = blocks.filter((block) => block.type === "text");
  if (texts.length !== 1 || typeof texts[0]!.text !== "string") return undefined;
  try {
    return read(texts[0]!.text);
  } catch {
    return texts[0]!.text;
  }
}
