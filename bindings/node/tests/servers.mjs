// Server objects for the tests in memory, on both versions of the TypeScript SDK.
import { McpServer as Server1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as Server2 } from "@modelcontextprotocol/server";
import { z } from "zod";

/** A calculator on version 1, which also asks its client, reports progress and logs. */
export function calculator1() {
  const server = new Server1({ name: "calculator", version: "1.2.3" }, { instructions: "Adds numbers", capabilities: { logging: {} } });
  server.registerTool("add", addition, add);
  server.registerTool("divide", { description: "Divides", inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => {
    if (b === 0) {
      throw new Error("division by zero");
    }
    return text(String(a / b));
  });
  server.registerTool("ask", { description: "Asks the user for a name" }, async () => {
    const asked = await server.server.elicitInput({
      message: "Who are you?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    });
    return text(`${asked.action} ${asked.content?.name}`);
  });
  server.registerTool("think", { description: "Asks the model, and for the folders" }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "What is 2 + 2?" } }];
    const { content } = await server.server.createMessage({ messages, maxTokens: 10 });
    const { roots } = await server.server.listRoots();
    return text(`${content.text} in ${roots.map(({ uri }) => uri)}`);
  });
  server.registerTool("count", { description: "Counts to three" }, async ({ _meta, sendNotification }) => {
    for (const progress of [1, 2, 3]) {
      await sendNotification({ method: "notifications/progress", params: { progressToken: _meta.progressToken, progress, total: 3 } });
    }
    await sendNotification({ method: "notifications/message", params: { level: "info", data: "counted" } });
    return text("done");
  });
  server.registerTool("hang", { description: "Never answers" }, ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  server.registerResource("readme", "calculator://readme", { mimeType: "text/plain" }, (uri) => ({ contents: [{ uri: uri.href, text: "Adds." }] }));
  server.registerPrompt("sum", { argsSchema: { of: z.string() } }, ({ of }) => ({
    messages: [{ role: "user", content: { type: "text", text: `The sum of ${of}?` } }],
  }));
  return server;
}

/** The same addition on version 2. */
export function calculator2() {
  const server = new Server2({ name: "calculator", version: "2.0.0" });
  server.registerTool("add", { ...addition, inputSchema: z.object(addition.inputSchema), outputSchema: z.object(addition.outputSchema) }, add);
  return server;
}

const addition = {
  description: "Adds two numbers",
  inputSchema: { a: z.number(), b: z.number() },
  outputSchema: { sum: z.number(), order: z.string() },
};

function add({ a, b }) {
  return { ...text(String(a + b)), structuredContent: { sum: a + b, order: `ORD-${a}${b}` } };
}

function text(text) {
  return { content: [{ type: "text", text }] };
}
