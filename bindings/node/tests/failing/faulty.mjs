// A server over stdio with one fault for each of its tools; with the argument `late`, one that comes when its input ends.
import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) {
    continue;
  }
  if (method === "initialize") {
    send({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "faulty", version: "1" } } });
  } else if (method === "tools/call") {
    const text = params.name === "large" ? "x".repeat(4 << 20) : params.name;
    const result = { content: [{ type: "text", ...(params.name === "malformed" ? {} : { text }) }] };
    if (params.name === "noise") {
      process.stdout.write("debug: called\n");
    }
    if (params.name === "crash") {
      process.exit(9);
    }
    send({ id, result });
    if (params.name === "twice") {
      send({ id, result });
    }
    if (params.name === "end") {
      process.exit(7);
    }
  } else {
    send({ id, error: { code: -32601, message: "no such method" } });
  }
}

if (process.argv[2] === "late") {
  process.stdout.write("debug: bye\n");
}
