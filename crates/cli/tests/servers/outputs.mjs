// A stdio server whose tools keep or break their own output schemas. One raw message a line, without an SDK that would
// refuse to break them.
import { createInterface } from "node:readline";

const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const text = [{ type: "text", text: "done" }];
// Each definition refers twice to the next one.
const twice = (index) => ({ allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] });
const defs = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`d${index}`, twice(index)]));
const tools = {
  multiplied: [{ type: "object", $ref: "#/$defs/d0", $defs: { ...defs, d60: { type: "object" } } }, { content: text, structuredContent: {} }],
  right: [object({ id: { type: "string" } }), { content: text, structuredContent: { id: "a" } }],
  wrong: [object({ id: { type: "string" }, items: { type: "array" } }), { content: text, structuredContent: { id: 7, items: [] } }],
  missing: [object({ id: { type: "string" } }), { content: text }],
  failing: [object({ id: { type: "string" } }), { content: text, isError: true }],
  invalid: [{ type: "object", properties: { id: { type: "no type" } } }, { content: text, structuredContent: {} }],
  elsewhere: [{ type: "object", $ref: "https://example.invalid/schema.json" }, { content: text, structuredContent: {} }],
  plain: [undefined, { content: text }],
};
let lists = 0;

const answer = ({ method, params }) => {
  switch (method) {
    case "initialize":
      return { protocolVersion: process.argv[2] ?? params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "outputs", version: "1" } };
    case "tools/list":
      lists += 1;
      return { tools: Object.entries(tools).map(([name, [outputSchema]]) => ({ name, inputSchema: { type: "object" }, outputSchema })) };
    case "tools/call":
      return params.name === "lists" ? { content: [{ type: "text", text: String(lists) }] } : tools[params.name][1];
    case "ping":
      return {};
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined) continue;
  const result = answer(message);
  const reply = result ? { result } : { error: { code: -32601, message: "method not found" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...reply }));
}
