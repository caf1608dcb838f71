// The smallest correct server with @modelcontextprotocol/sdk 1. With a port, it serves Streamable HTTP there.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { z } from "zod";

const info = { name: "smallest", version: "1.0.0" };

function make() {
  let server = new McpServer(info, { capabilities: { logging: {} } });
  // Versions before 1.17 leave it to the author to set the level: this one has no log.
  if (!server.server._requestHandlers.has("logging/setLevel")) server = new McpServer(info);
  const description = "Gives back the message it was called with.";
  const inputSchema = { message: z.string().describe("What to give back") };
  const echo = async ({ message }) => ({ content: [{ type: "text", text: message }] });
  // Versions before 1.13 have no other way, and those before 1.9 no annotations.
  if (server.registerTool) server.registerTool("echo", { description, inputSchema, annotations: { readOnlyHint: true } }, echo);
  else server.tool("echo", description, inputSchema, echo);
  server.resource("greeting", "smallest://greeting", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "Hello" }],
  }));
  server.prompt("greet", "Asks for a greeting.", { name: z.string() }, async ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }],
  }));
  return server;
}

const port = Number(process.argv[2] ?? 0);
if (port === 0) {
  await make().connect(new StdioServerTransport());
  process.stdin.on("end", () => process.exit(0));
} else {
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const transports = new Map();
  const hosts = [`127.0.0.1:${port}`, `localhost:${port}`];
  const refuse = (response, status, code, message) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message } }));
  };
  const server = createServer(async (request, response) => {
    const { origin, host } = request.headers;
    if (!hosts.includes(host) || (origin !== undefined && !hosts.includes(origin.replace("http://", "")))) {
      return refuse(response, 403, -32000, "Forbidden");
    }
    if (new URL(request.url, "http://localhost").pathname !== "/mcp") return response.writeHead(404).end();
    const id = request.headers["mcp-session-id"];
    if (id !== undefined && !transports.has(id)) return refuse(response, 404, -32001, "Session not found");
    let transport = transports.get(id);
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (session) => transports.set(session, transport),
      });
      transport.onclose = () => transports.delete(transport.sessionId);
      await make().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  server.listen(port, "127.0.0.1");
  process.on("SIGTERM", () => process.exit(0));
}
