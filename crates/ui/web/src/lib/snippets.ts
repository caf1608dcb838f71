// A call as text that does the same elsewhere: command line, suite, curl, test libraries.
import { declared } from "./answers";
import { isObject } from "./calls";
import { LongNumber, read, write } from "./lossless";
import { inCode, inShell, inSuite } from "./secrets";
import type { Connection, Handshake, Json, JsonObject, Spec } from "./types";
import type { Failed, Step } from "./store";

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

/** What a copy says where it cannot have the responses of the client, or not all of them. */
function about(step: Step, mark: string, lost?: string): string {
  if (!step.answers) return "";
  if (lost) return `${mark} The server asked the client meanwhile (${Object.keys(declared(step.answers)).join(", ")}): ${lost}\n`;
  return (step.answers.unlike ?? []).map((kind) => `${mark} The server asked for ${kind} more than once, and got different responses: only the last one is here.\n`).join("");
}

export function cli(connection: Connection, { method, params, ...step }: Pick<Step, "method" | "params" | "answers">): string {
  return about({ title: "", method, params, ...step }, "#", "`mcproof call` has no responses for that. Copy as suite, which has them.") + inShell(cliOf(connection, method, params));
}

function cliOf(connection: Connection, method: string, params: JsonObject): string {
  const { first, last } = target(connection);
  const args = isObject(params.arguments) ? params.arguments : {};
  const pairs = Object.entries(args).map(([name, value]) =>
    word(typeof value === "string" && !/^[\s[{"\d-]|^(true|false|null)$/.test(value) ? `${name}=${value}` : `${name}:=${write(value)}`));
  if (method === "tools/call") return ["mcproof call", ...first, word(String(params.name)), ...pairs, ...last].join(" ");
  if (method === "prompts/get")
    return ["mcproof prompt", ...first, word(String(params.name)), ...Object.entries(args).map(([name, value]) => word(`${name}=${String(value)}`)), ...last].join(" ");
  if (method === "resources/read") return ["mcproof read", ...first, word(String(params.uri)), ...last].join(" ");
  return ["mcproof inspect", ...first, "--method", word(method), ...(Object.keys(params).length > 0 ? ["--params", word(write(params))] : []), ...last].join(" ");
}

/** JSON on one line, as YAML takes it too. In suites `$` begins a variable, which is written twice to stand for itself. */
function flow(value: Json): string {
  return write(value).replaceAll("${", () => "$${");
}

function scalar(text: string): string {
  return /^[A-Za-z][\w -]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text) ? text : flow(text);
}

/** What stands for a value that may be secret. */
const REDACTED = "[redacted]";
const TIMES = [/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i, /^\d{4}-\d\d-\d\dT\d\d:\d\d/] as const;

/** Whether something in it was redacted. */
export function isRedacted(value: Json | undefined): boolean {
  return value !== undefined && write(value).includes(REDACTED);
}

/** As of `trace export --suite`: characters of a text, elements of an array, members of an object, and how deep they stand in each other. */
const BOUNDS = { text: 10_000, elements: 500, keys: 500, depth: 30 };
/** Characters of a whole expectation; of a larger one, only its shape stays. */
const LARGEST = 60_000;
const SHAPE: typeof BOUNDS = { text: 300, elements: 8, keys: 40, depth: 4 };

/** What a response must be: its shape, with values that stay the same as they are and the rest by type. */
export function expectation(payload: Json): Json {
  const whole = within(payload, BOUNDS);
  return write(whole).length <= LARGEST ? whole : within(payload, SHAPE);
}

function within(payload: Json, bounds: typeof BOUNDS, depth = 0): Json {
  if (Array.isArray(payload)) return depth > bounds.depth || payload.length > bounds.elements ? { $type: "array" } : payload.map((one) => within(one, bounds, depth + 1));
  if (isObject(payload)) {
    if (depth > bounds.depth) return { $type: "object" };
    const members = Object.entries(payload).filter(([name]) => !name.includes(REDACTED)).slice(0, bounds.keys);
    return Object.fromEntries(members.map(([name, value]) => [name.startsWith("$") ? `$${name}` : name, within(value, bounds, depth + 1)]));
  }
  if (typeof payload === "string") {
    if (TIMES[0].test(payload)) return { $uuid: true };
    if (TIMES[1].test(payload)) return { $datetime: true };
    if (payload.length > bounds.text || payload.replaceAll(REDACTED, "").trim() === "" && payload !== "" && payload.includes(REDACTED)) return { $type: "string" };
    // What was redacted is not known here: any text fits in its place.
    if (payload.includes(REDACTED)) return { $regex: `^${payload.split(REDACTED).map(escaped).join("(?s:.*)")}$` };
  }
  return payload;
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/#&~-]/g, "\\$&");

/** Whether a suite would take the text for a pattern. */
const isPattern = (text: string) => /^\/.*\/[a-z]*$/s.test(text);

/** What in the text of an error is another one next time: identifiers, times, numbers that grow. */
const FLEETING = /[0-9a-f]{8}-[0-9a-f]{4}-|\d{4}-\d\d-\d\d|\d\d:\d\d|(?=[a-f]*\d)[0-9a-f]{12,}|0x[0-9a-f]+|\d{6,}|\b(?:localhost|127\.0\.0\.1):\d+|\d+(?:\.\d+)?\s?(?:ms|µs|seconds?|s)\b|\[redacted\]/i;
/** Characters of the text of an error that are expected, and the fewest that say something. */
const LONGEST_ERROR = 100;
const SHORTEST_ERROR = 4;

/** How a call failed, as a test expects it: any error would also be that of a tool that is gone. */
export function failedWith(text: string | undefined, target: string, code?: number): Failed {
  const coded = code === undefined ? {} : { code };
  const line = text?.split("\n").map((line) => line.trim()).find((line) => line !== "") ?? "";
  const until = FLEETING.exec(line)?.index ?? line.length;
  const steady = [...line.slice(0, until)].slice(0, LONGEST_ERROR).join("").trim();
  const isSaid = (part: string) => part.length >= Math.min(SHORTEST_ERROR, line.length) && part !== "" && !isPattern(part);
  // Servers say which tool they do not have.
  const part = isSaid(steady) ? steady : isSaid(target) && line.includes(target) ? target : undefined;
  return part === undefined ? coded : { ...coded, text: part, ...(part === text ? {} : { partly: true }) };
}

/** The error of a refused request, as matchers take it; undefined if nothing is known of it. */
function rpcError({ code, text, partly }: Failed): JsonObject | undefined {
  if (code === undefined && text === undefined) return undefined;
  return { ...(code === undefined ? {} : { code }), ...(text === undefined ? {} : { message: partly || isPattern(text) ? { $regex: escaped(text) } : text }) };
}

/** Characters of an image or a file that a test compares; of more, it compares how many they are. */
const LONGEST_DATA = 200_000;

/** A raw result that has no payload, or one that is more than a payload, as it must be: kinds of blocks, texts, and bytes. */
export function resultExpectation(method: string, result: JsonObject): Json | undefined {
  const block = (value: Json): Json => {
    if (!isObject(value)) return expectation(value);
    const known: [string, Json][] = [];
    for (const [name, one] of Object.entries(value)) {
      if (["type", "mimeType", "uri", "name", "text", "role"].includes(name)) known.push([name, expectation(one)]);
      else if ((name === "data" || name === "blob") && typeof one === "string" && one !== "") known.push([name, isRedacted(one) ? { $type: "string" } : one.length > LONGEST_DATA ? { $len: one.length } : one]);
      else if (name === "resource" || name === "content") known.push([name, block(one)]);
    }
    return Object.fromEntries(known);
  };
  const list = method === "tools/call" ? "content" : method === "resources/read" ? "contents" : method === "prompts/get" ? "messages" : undefined;
  const blocks = list === undefined ? undefined : result[list];
  if (!Array.isArray(blocks)) return undefined;
  const structured: JsonObject = method === "tools/call" && isObject(result.structuredContent) ? { structuredContent: expectation(result.structuredContent) } : {};
  return { [list!]: blocks.length > BOUNDS.elements ? { $len: blocks.length } : blocks.map(block), ...structured };
}

/** Whether a result has more than its payload: an image, a resource, a link. */
export function saysMore({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.some((block) => isObject(block) && block.type !== "text");
}

/** What the policies of a server are as `answers:` of a test. A text of several lines stays as it was written, with its comments. */
export function answersYaml({ policy }: Pick<Connection, "policy">): string[] {
  if (!policy || Object.keys(policy.answers).length === 0) return [];
  const lines = policy.text.replace(/^(\s*\n)+|\s+$/g, "").split("\n");
  // What begins or ends a document stands in no other one.
  if (lines.length === 1 || lines.some((line) => /^(---|\.\.\.|%)/.test(line))) return [`answers: ${flow(policy.answers as JsonObject)}`];
  return ["answers:", ...lines.map((line) => (line.trim() === "" ? "" : `  ${line}`))];
}

/** A step without the responses that the test has. */
function beside(step: Step, { policy }: Pick<Connection, "policy">): Step {
  if (!step.answers || !policy) return step;
  const { unlike, ...given } = step.answers;
  const own = Object.entries(given).filter(([kind, value]) => write(value) !== write((policy.answers as JsonObject)[kind] ?? null));
  const { answers: _, ...rest } = step;
  if (own.length === 0) return rest;
  const still = unlike?.filter((kind) => own.some(([name]) => name === kind)) ?? [];
  return { ...rest, answers: { ...Object.fromEntries(own), ...(still.length > 0 ? { unlike: still } : {}) } };
}

export function suiteStep(step: Step, indent = "      "): string {
  const { method, params, written } = step;
  const lines: string[] = [];
  const joined = () => inSuite(lines.map((line, index) => indent + (index === 0 ? "- " : "  ") + line).join("\n"));
  if (written) {
    // Its variables are variables: what stands for itself is escaped already.
    lines.push(...Object.entries(written).map(([key, value]) => `${key}: ${write(value)}`));
    if (isRedacted(written.with) || isRedacted(written.answers)) lines.splice(1, 0, "# An argument was redacted: put its value in, such as ${env.NAME}.");
    return joined();
  }
  const args = isObject(params.arguments) ? params.arguments : {};
  if (method === "tools/call") lines.push(`call: ${scalar(String(params.name))}`, `with: ${flow(args)}`);
  else if (method === "resources/read") lines.push(`read: ${flow(String(params.uri))}`);
  else if (method === "prompts/get") lines.push(`prompt: ${scalar(String(params.name))}`, `with: ${flow(args)}`);
  else lines.push(`raw: ${flow({ jsonrpc: "2.0", id: 1, method, params })}`);
  if (isRedacted(params)) lines.splice(1, 0, "# An argument was redacted: put its value in, such as ${env.NAME}.");
  if (step.task) lines.push("task: true");
  if (step.answers) {
    if (isRedacted(declared(step.answers))) lines.push("# A response was redacted: put its value in, such as ${env.NAME}.");
    lines.push(...about(step, "#").split("\n").filter(Boolean), `answers: ${flow(declared(step.answers))}`);
  }
  if (step.failed && step.refused) lines.push(`rpc_error: ${flow(rpcError(step.error ?? {}) ?? true)}`);
  else if (step.failed) lines.push(`tool_error: ${flow(step.error?.text ?? true)}`);
  else if (step.payload !== undefined && method === "tools/call") {
    if (isRedacted(step.payload)) lines.push("# What was redacted may be any text.");
    const wanted = expectation(step.payload);
    lines.push(`expect: ${typeof wanted === "string" ? flow(isPattern(wanted) ? { $exact: wanted } : { $text: wanted }) : flow(wanted)}`);
  } else if (step.result !== undefined) {
    if (isRedacted(step.result) || write(step.result).includes("(?s:.*)")) lines.push("# What was redacted may be any text.");
    lines.push(`result: ${flow(step.result)}`);
  }
  return joined();
}

/** What the server is: for one of a configuration file, what that file says of it. */
export function serverOf({ spec, resolved }: Connection): Spec {
  return spec.server && resolved ? resolved : spec;
}

/** The variable that holds the value of a header. */
const variable = (header: string) => header.toUpperCase().replaceAll(/\W/g, "_");

const isAbsolute = (path: string) => /^([/\\]|[A-Za-z]:)/.test(path);

/** Where the command runs, seen from the folder of a suite: that of `mcproof ui`, unless another one was named. */
export function folderFrom(file: string, cwd: string | null): string | undefined {
  if (cwd && isAbsolute(cwd)) return cwd;
  const up = file.split("/").filter((part) => part !== "" && part !== ".").slice(1).map(() => "..");
  const down = (cwd ?? "").split("/").filter((part) => part !== "" && part !== ".");
  return [...up, ...down].join("/") || undefined;
}

function serverYaml(connection: Connection, file: string, era: string | undefined): string {
  const spec = serverOf(connection);
  const named = (pairs: [string, string][], from: (name: string) => string) => `{ ${pairs.map(([name]) => `${scalar(name)}: "\${env.${from(name)}}"`).join(", ")} }`;
  const entries: string[] = [];
  const folder = folderFrom(file, spec.cwd);
  if (spec.command.length > 0) entries.push(`command: ${flow(spec.command.map(word).join(" "))}`);
  if (spec.url) entries.push(`url: ${spec.command.length > 0 ? JSON.stringify(spec.url) : flow(spec.url)}`);
  if (spec.command.length > 0 && spec.env.length > 0) entries.push(`env: ${named(spec.env, (name) => name)}`);
  if (spec.command.length > 0 && folder) entries.push(`cwd: ${JSON.stringify(folder)}`);
  if (spec.url && spec.headers.length > 0) entries.push(`headers: ${named(spec.headers, variable)}`);
  if (entries.length === 0) return `# Describe the server here: \`mcproof init ${spec.server ?? ""}\` shows how.\nserver:\n  stdio: { command: "…" }`;
  const transport = spec.url ? (spec.transport === "sse" ? "sse" : "http") : "stdio";
  return `server:\n  ${transport}: { ${entries.join(", ")} }${era && transport !== "sse" ? `\n  era: ${era}` : ""}`;
}

/** A test as an item of the list `tests:` of a suite. */
export function suiteTest(connection: Pick<Connection, "policy">, steps: Step[], title: string): string {
  const own = answersYaml(connection);
  const declared = steps.find((step) => step.beside)?.beside;
  const answers = (own.length === 0 && declared ? [`answers: ${write(declared)}`] : own).map((line) => (line === "" ? "\n" : `  ${line}\n`)).join("");
  return `- name: ${scalar(title)}\n${answers}  steps:\n${steps.map((step) => suiteStep(beside(step, connection), "    ")).join("\n")}`;
}

export const USUAL_NAME = "what was tried in the inspector";

/** The text of a suite that is to stand in this file, seen from the folder of `mcproof ui`. */
export function suite(connection: Connection, steps: Step[], title = USUAL_NAME, file = "inspector.mcproof.yaml"): string {
  const test = suiteTest(connection, steps, title).split("\n").map((line) => (line === "" ? "" : `  ${line}`)).join("\n");
  // What a whole session has asked for is of its era.
  const era = steps.some((step) => step.written) ? connection.sessions.at(-1)?.handshake?.era : undefined;
  return `${serverYaml(connection, file, era)}\n\ntests:\n${test}\n`;
}

/** The names of the tests in the text of a suite. */
export function testNames(text: string): string[] {
  return [...text.matchAll(/^\s*(?:-\s+)?name:[ \t]+(.+?)[ \t]*$/gm)].map(([, written]) => {
    const quoted = /^"(?:[^"\\]|\\.)*"/.exec(written!)?.[0];
    if (quoted) {
      try {
        return String(JSON.parse(quoted)).replaceAll("$${", () => "${");
      } catch {
        return quoted.slice(1, -1);
      }
    }
    const single = /^'((?:[^']|'')*)'/.exec(written!)?.[1];
    return single !== undefined ? single.replaceAll("''", "'") : written!.replace(/\s+#.*$/, "");
  });
}

/** The name, or one like it that no other test has. */
export function freeName(name: string, taken: string[]): string {
  if (!taken.includes(name)) return name;
  for (let number = 2; ; number++) if (!taken.includes(`${name} ${number}`)) return `${name} ${number}`;
}

export function curl(connection: Connection, handshake: Handshake | null, method: string, params: JsonObject): string | null {
  const spec = serverOf(connection);
  if (!canCurl(connection, handshake)) return null;
  return inShell(curlOf(spec, handshake, method, params));
}

function curlOf(spec: Spec, handshake: Handshake | null, method: string, params: JsonObject): string {
  const version = handshake?.protocolVersion ?? "2025-11-25";
  const modern = handshake?.era === "modern";
  const body = { jsonrpc: "2.0", id: 1, method, params: modern ? { ...params, _meta: { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientInfo": { name: "curl", version: "1" }, "io.modelcontextprotocol/clientCapabilities": {} } } : params };
  const quoted = (header: string) => (header.includes(": $") ? `"${header}"` : word(header));
  const send = (headers: string[], body: JsonObject, flags = "") =>
    `curl -sS${flags} ${word(spec.url!)} \\\n${headers.map((header) => `  -H ${quoted(header)} \\\n`).join("")}  -d ${word(write(body))}`;
  const usual = ["content-type: application/json", "accept: application/json, text/event-stream", ...spec.headers.map(([name]) => `${name}: $${variable(name)}`)];
  if (modern) {
    const name = params.name ?? params.uri;
    return send([...usual, `mcp-protocol-version: ${version}`, `mcp-method: ${method}`, ...(typeof name === "string" ? [`mcp-name: ${name}`] : [])], body);
  }
  // A server without sessions sends no identifier, and curl leaves out a header without a value.
  const inside = [...usual, `mcp-protocol-version: ${version}`, "mcp-session-id: $SESSION"];
  const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: version, capabilities: {}, clientInfo: { name: "curl", version: "1" } } };
  return `# Begins a session, in which the request is sent then.
SESSION=$(${send(usual, hello, " -D - -o /dev/null")} |
  tr -d '\\r' | sed -n 's/^[Mm][Cc][Pp]-[Ss]ession-[Ii][Dd]: *//p')
${send(inside, { jsonrpc: "2.0", method: "notifications/initialized" })}
${send(inside, body)}`;
}

/** Whether one request with curl can do the same. */
export function canCurl(connection: Connection, handshake: Handshake | null): boolean {
  const { url, transport, command } = serverOf(connection);
  return Boolean(url) && command.length === 0 && transport !== "sse" && handshake?.transport !== "sse";
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

/** A text as Rust writes it, where an escape is not the same as in JSON. */
function rustText(text: string): string {
  return JSON.stringify(text).replaceAll(/\\(u([0-9a-f]{4})|b|f|.)/g, (escape, kind: string, code: string | undefined) =>
    code ? (/^d[89a-f]/.test(code) ? "\\u{fffd}" : `\\u{${code}}`) : kind === "b" ? "\\u{8}" : kind === "f" ? "\\u{c}" : escape);
}

/** A value as it stands in `json!`. */
function rustValue(value: Json, by: string): string {
  const inside = `${by}  `;
  if (typeof value === "string") return rustText(value);
  if (Array.isArray(value)) return value.length === 0 ? "[]" : `[\n${value.map((one) => inside + rustValue(one, inside)).join(",\n")}\n${by}]`;
  if (isObject(value)) {
    const members = Object.entries(value);
    return members.length === 0 ? "{}" : `{\n${members.map(([name, one]) => `${inside}${rustText(name)}: ${rustValue(one, inside)}`).join(",\n")}\n${by}}`;
  }
  const text = write(value);
  if (!/^-?\d+$/.test(text)) return /^-?\d+[eE]/.test(text) ? `${text}_f64` : text;
  const number = BigInt(text);
  if (number >= -(2n ** 31n) && number < 2n ** 31n) return text;
  return number >= -(2n ** 63n) && number < 2n ** 63n ? `${text}_i64` : number > 0n && number < 2n ** 64n ? `${text}_u64` : `${text}_f64`;
}

const identifier = (text: string) => text.replaceAll(/\W+/g, "_").replace(/^(\d)/, "_$1").toLowerCase() || "call";

/** A redacted argument is told, in the comments of a language. */
const toFill = (step: Step, mark: string) => (isRedacted(step.params) || (step.answers && isRedacted(declared(step.answers))) ? `${mark} An argument was redacted: put its value in.\n` : "");

export function pytest(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const spec = serverOf(connection);
  const from = (pairs: [string, string][], variable: (name: string) => string) => `{${pairs.map(([name]) => `${JSON.stringify(name)}: os.environ[${JSON.stringify(variable(name))}]`).join(", ")}}`;
  const parts: string[] = [];
  if (spec.command.length > 0) parts.push(`"command": ${python(spec.command)}`);
  if (spec.url) parts.push(`"url": ${JSON.stringify(spec.url)}`);
  if (spec.command.length > 0 && spec.env.length > 0) parts.push(`"env": ${from(spec.env, (name) => name)}`);
  if (spec.command.length > 0 && spec.cwd) parts.push(`"cwd": ${JSON.stringify(spec.cwd)}`);
  if (spec.url && spec.headers.length > 0) parts.push(`"headers": ${from(spec.headers, variable)}`);
  if (spec.url && spec.transport === "sse") parts.push('"transport": "sse"');
  const server = parts.length === 0 ? JSON.stringify(spec.server ?? "") : parts.length > 1 ? `{${parts.join(", ")}}` : spec.url ? JSON.stringify(spec.url) : python(spec.command);
  const name = JSON.stringify(String(step.params.name));
  const call = `${name}, ${python(args)}`;
  const error = step.error ?? {};
  const body = step.failed
    ? step.refused
      ? `    with pytest.raises(Refused) as refused:\n        await mcp_client.call(${call})${error.code === undefined ? "" : `\n    assert refused.value.code == ${error.code}`}${error.text === undefined ? "" : `\n    assert ${python(error.text)} in refused.value.error["message"]`}`
      : `    result = await mcp_client.call(${call})\n    result.expect_error(${error.text === undefined ? "" : python(`/${escaped(error.text)}/`)})`
    : `    result = await mcp_client.call_tool(${call})\n${step.payload !== undefined ? `    result.expect(${python(expectation(step.payload))})` : step.result !== undefined ? `    result.expect_raw(${python(step.result)})` : "    assert not result.is_error"}`;
  const text = inCode(`import pytest
${step.failed && step.refused ? "from mcproof import Refused\n" : ""}
@pytest.fixture
def mcp_server():
    return ${server}

${toFill(step, "#")}${about(step, "#")}${step.answers ? `@pytest.mark.mcp(${Object.entries(declared(step.answers)).map(([kind, value]) => `${kind}=${python(value)}`).join(", ")})\n` : ""}async def test_${identifier(String(step.params.name))}(mcp_client):
${body}
`, (name) => `os.environ["${name}"]`);
  return text.includes("os.environ[") ? `import os\n\n${text}` : text;
}

export function vitest(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const spec = serverOf(connection);
  const from = (pairs: [string, string][], variable: (name: string) => string) => `{ ${pairs.map(([name]) => `${JSON.stringify(name)}: process.env[${JSON.stringify(variable(name))}]!`).join(", ")} }`;
  const parts: string[] = [];
  if (spec.command.length > 0) parts.push(`command: ${JSON.stringify(spec.command)}`);
  if (spec.url) parts.push(`url: ${JSON.stringify(spec.url)}`);
  if (spec.command.length > 0 && spec.env.length > 0) parts.push(`env: ${from(spec.env, (name) => name)}`);
  if (spec.command.length > 0 && spec.cwd) parts.push(`cwd: ${JSON.stringify(spec.cwd)}`);
  if (spec.url && spec.headers.length > 0) parts.push(`headers: ${from(spec.headers, variable)}`);
  if (spec.url && spec.transport === "sse") parts.push('transport: "sse"');
  const server = parts.length === 0 ? JSON.stringify(spec.server ?? "") : parts.length > 1 ? `{ ${parts.join(", ")} }` : JSON.stringify(spec.url ?? spec.command);
  const call = `client.call(${JSON.stringify(String(step.params.name))}, ${indent(args, "  ")})`;
  const refusal = rpcError(step.error ?? {});
  const rounded = write(rounding(args)) !== write(args) ? "  // JavaScript rounds the long number: pass such identifiers as texts.\n" : "";
  const body = step.failed
    ? step.refused ? `  await expect(${call}).rejects.toBeRpcError(${refusal ? indent(refusal, "  ") : ""});` : `  await expect(await ${call}).toBeToolError(${step.error?.text === undefined ? "" : `/${escaped(step.error.text)}/`});`
    : `  const result = await ${call};\n  ${step.payload !== undefined || step.result === undefined ? `await expect(result).toMatchExpectation(${indent(rounding(expectation(step.payload ?? {})), "  ")});` : `await expect(result.result).toMatchExpectation(${indent(rounding(step.result), "  ")});`}`;
  return inCode(`import { testClient } from "mcproof/vitest";
import { expect, it } from "vitest";

${toFill(step, "//")}${about(step, "//")}it(${JSON.stringify(String(step.params.name))}, async () => {
  await using client = await testClient(${server}${step.answers ? `, { answers: ${indent(declared(step.answers), "  ")} }` : ""});
${rounded}${body}
});
`, (name) => `process.env["${name}"]!`);
}

/** With long numbers by their type: JavaScript would round them. */
function rounding(value: Json): Json {
  if ((value as unknown) instanceof LongNumber) return (value as unknown as LongNumber).isExact ? value : { $type: "number" };
  if (Array.isArray(value)) return value.map(rounding);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, rounding(one)])) : value;
}

/** The responses of the client as members of `Answers`, and what these need. */
function rustAnswers({ elicitation, sampling }: JsonObject): { fields: string[]; names: string[] } | undefined {
  const fields: string[] = [];
  const names: string[] = [];
  const json = (value: Json) => `json!(${rustValue(value, "    ")})`;
  if (elicitation !== undefined) {
    names.push("Elicitation");
    const values = isObject(elicitation) ? elicitation : {};
    fields.push(`elicitation: Some(Elicitation::${elicitation === "decline" ? "Decline" : elicitation === "cancel" ? "Cancel" : `Accept(${json(values)}.as_object().cloned().unwrap_or_default())`})`);
  }
  if (sampling !== undefined) {
    names.push("Sampling");
    fields.push(`sampling: Some(Sampling::${sampling === "reject" ? "Reject" : typeof sampling === "string" ? `Text(${rustText(sampling)}.to_owned())` : `Result(${json(sampling)})`})`);
  }
  return fields.length > 0 ? { fields, names } : undefined;
}

export function rust(connection: Connection, step: Step): string {
  const args = isObject(step.params.arguments) ? step.params.arguments : {};
  const spec = serverOf(connection);
  const { command, url } = spec;
  const isSse = spec.transport === "sse";
  const set = spec.env.map(([name]) => `\n        .env(${rustText(name)}, std::env::var(${rustText(name)}).expect(${rustText(`${name} is set`)}))`).join("");
  const folder = spec.cwd ? `\n        .folder(${rustText(spec.cwd)})` : "";
  const listening = url ? `\n        .${isSse ? "sse" : "http"}([] as [&str; 0], ${rustText(url)})` : "";
  const words = `[${(command.length > 0 ? command : [spec.server ?? "server"]).map(rustText).join(", ")}]`;
  const own = url && command.length === 0;
  const answers = step.answers && !own ? rustAnswers(declared(step.answers)) : undefined;
  const body = answers ? `let target = Program::new(${words})${set}${folder}${listening}${set || folder || listening ? "\n        " : ""}.target(transport)?;\n    let answers = Answers { ${answers.fields.join(", ")}, ..Answers::default() };\n    Client::connect(&target, &ConnectOptions { answers, ..ConnectOptions::default() }).await` : own ? `Client::${isSse ? "sse" : "http"}(${rustText(url)}).await` : `Program::new(${words})${set}${folder}${listening}${set || folder || listening ? "\n        " : ""}.over(transport).await`;
  const name = rustText(String(step.params.name));
  const call = `client.call(${name}, json!(${rustValue(args, "    ")})).await`;
  const error = step.error ?? {};
  const checks = step.failed
    ? [
        `    let result = ${call}?;`,
        step.refused ? `    assert!(result.rpc_error().is_some_and(|error| ${error.code === undefined ? "!error.message.is_empty()" : `error.code == ${error.code}`}));` : "    assert!(result.is_error());",
        ...(error.text === undefined ? [] : [`    result.expect_error(${rustText(error.text)});`]),
      ].join("\n")
    : `    let result = ${call}?;\n    ${step.payload === undefined ? (step.result === undefined ? "assert!(!result.is_error());" : `result.expect_result(json!(${rustValue(step.result, "    ")}));`) : `result.expect(json!(${rustValue(expectation(step.payload), "    ")}));`}`;
  const headers = own && spec.headers.length > 0 ? `    // The server was reached with the headers ${spec.headers.map(([name]) => name).join(", ")}, which have to be added.\n` : "";
  const lost = own ? "give the client its responses with `Client::connect` and `ConnectOptions`." : step.answers && "roots" in step.answers ? "the roots have to be added to `Answers`." : undefined;
  const names = ["Client", "Failure", "Transport", ...(own ? [] : ["Program"]), ...(answers ? ["Answers", "ConnectOptions", ...answers.names] : [])].sort();
  return inCode(`use mcproof::{${names.join(", ")}};
use serde_json::json;

async fn server(${own ? "_" : ""}transport: Transport) -> Result<Client, Failure> {
${headers}    ${body}
}

${toFill(step, "//")}${lost ? about(step, "//", lost) : ""}${own ? "" : about(step, "//")}#[mcproof::test(server = server, transports = [${url ? (isSse ? "sse" : "http") : "stdio"}])]
async fn ${identifier(String(step.params.name))}(client: &Client) -> Result<(), Failure> {
${checks}
    Ok(())
}
`, (name) => `std::env::var("${name}").expect("${name} is set")`);
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
