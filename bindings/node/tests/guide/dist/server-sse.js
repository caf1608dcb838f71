import { createServer as listen } from "node:http";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { createServer } from "./tracker.js";

const sessions = new Map();

listen(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  if (pathname === "/health") {
    response.end("ok");
  } else if (pathname === "/sse" && request.method === "GET") {
    const transport = new SSEServerTransport("/messages", response);
    sessions.set(transport.sessionId, transport);
    response.on("close", () => sessions.delete(transport.sessionId));
    await createServer().connect(transport);
  } else if (pathname === "/messages" && sessions.has(searchParams.get("sessionId"))) {
    await sessions.get(searchParams.get("sessionId")).handlePostMessage(request, response);
  } else {
    response.writeHead(pathname === "/sse" ? 405 : 404).end();
  }
}).listen(Number(process.env.PORT), "127.0.0.1");
