// A client of the TypeScript SDK: does what a script says and prints what came of each step. Arguments: the script as JSON, then the
// command of a server, or `http` or `sse` and a URL. The SDK is that of the package whose folder is in SDK.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.SDK}/`);
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
const { Client } = await load("client/index.js");
const types = await load("types.js");

const [given, ...server] = process.argv.slice(2);
const client = new Client(
  { name: "recorded", version: "1.0.0" },
  { capabilities: { sampling: {}, elicitation: {}, roots: {} } },
);
client.setRequestHandler(types.CreateMessageRequestSchema, () => ({
  model: "fixed", role: "assistant", content: { type: "text", text: "a fixed text" },
}));
// The user fills in what has to be, and nothing of what the form has a default for.
client.setRequestHandler(types.ElicitRequestSchema, ({ params: { requestedSchema: form } }) => {
  const required = form.required ?? [];
  return { action: "accept", content: Object.fromEntries(required.map((name) => [name, filled(form.properties[name])])) };
});
client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///somewhere", name: "somewhere" }] }));

await client.connect(await transport());
const print = (value) => console.log(JSON.stringify(value));
print([client.getServerVersion(), client.getServerCapabilities(), client.getInstructions() ?? null]);
for (const [action, name, args] of JSON.parse(given)) {
  const progress = [];
  // What comes together with the response is lost or not, as it happens.
  const onprogress = (report) => report.progress < report.total && progress.push(report);
  try {
    const result = await step(action, name, args, { onprogress });
    print({ [action]: name ?? null, result, progress });
  } catch (error) {
    print({ [action]: name ?? null, error: [error.code ?? null, error.message] });
  }
}
await client.close();

function filled(field) {
  const [choice] = field.enum ?? field.oneOf?.map((one) => one.const) ?? [];
  switch (field.type) {
    case "boolean": return true;
    case "integer":
    case "number": return field.minimum ?? 1;
    case "array": return [];
    default: return choice ?? { email: "ann@example.com", uri: "https://example.com", date: "2026-01-31" }[field.format] ?? "Ann Example";
  }
}

async function transport() {
  const [first, ...rest] = server;
  if (first === "http") {
    return new (await load("client/streamableHttp.js")).StreamableHTTPClientTransport(new URL(rest[0]));
  }
  if (first === "sse") {
    return new (await load("client/sse.js")).SSEClientTransport(new URL(rest[0]));
  }
  return new (await load("client/stdio.js")).StdioClientTransport({ command: first, args: rest, env: process.env });
}

function step(action, name, args, options) {
  switch (action) {
    case "tools": return client.listTools();
    case "call": return client.callTool({ name, arguments: args }, undefined, options);
    case "resources": return client.listResources();
    case "templates": return client.listResourceTemplates();
    case "read": return client.readResource({ uri: name });
    case "prompts": return client.listPrompts();
    case "prompt": return client.getPrompt({ name, arguments: args });
    default: throw new Error(`no action ${action}`);
  }
}
