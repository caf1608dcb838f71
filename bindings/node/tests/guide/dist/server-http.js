import { randomUUID } from "node:crypto";
import { createServer as listen } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createServer } from "./tracker.js";

const sessions = new Map();

listen(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const known = request.headers["mcp-session-id"];
  if (pathname === "/health") {
    response.end("ok");
  } else if (pathname !== "/mcp" || (known && !sessions.has(known))) {
    response.writeHead(404).end();
  } else {
    await (sessions.get(known) ?? (await open())).handleRequest(request, response);
  }
}).listen(Number(process.env.PORT), "127.0.0.1");

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (session) => void sessions.set(session, transport),
    onsessionclosed: (session) => void sessions.delete(session),
  });
  await createServer().connect(transport);
  return transport;
}
