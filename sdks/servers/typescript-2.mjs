// The smallest correct server with @modelcontextprotocol/server 2. With a port, it serves Streamable HTTP there.
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createServer } from "node:http";
import { z } from "zod";

function make() {
  const server = new McpServer({ name: "smallest", version: "1.0.0" }, { capabilities: { logging: {} } });
  const inputSchema = z.object({ message: z.string().describe("What to give back") });
  const echo = { description: "Gives back the message it was called with.", inputSchema, annotations: { readOnlyHint: true } };
  server.registerTool("echo", echo, async ({ message }) => ({ content: [{ type: "text", text: message }] }));
  server.registerResource("greeting", "smallest://greeting", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "Hello" }],
  }));
  server.registerPrompt("greet", { description: "Asks for a greeting.", argsSchema: z.object({ name: z.string() }) }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }],
  }));
  return server;
}

const port = Number(process.argv[2] ?? 0);
if (port === 0) {
  serveStdio(make);
} else {
  const handle = toNodeHandler(createMcpHandler(make));
  const [validateHost, validateOrigin] = [localhostHostValidation(), localhostOriginValidation()];
  const server = createServer(async (request, response) => {
    if (!validateHost(request, response) || !validateOrigin(request, response)) return;
    if (new URL(request.url, "http://localhost").pathname !== "/mcp") return response.writeHead(404).end();
    await handle(request, response);
  });
  server.listen(port, "127.0.0.1");
  process.on("SIGTERM", () => process.exit(0));
}
