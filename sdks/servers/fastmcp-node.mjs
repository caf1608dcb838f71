// The smallest correct server with the npm package fastmcp. With a port, it serves Streamable HTTP there.
import { FastMCP } from "fastmcp";
import { z } from "zod";

const server = new FastMCP({ name: "smallest", version: "1.0.0" });
server.addTool({
  name: "echo",
  description: "Gives back the message it was called with.",
  annotations: { readOnlyHint: true },
  parameters: z.object({ message: z.string().describe("What to give back") }),
  execute: async ({ message }) => message,
});
server.addResource({ uri: "smallest://greeting", name: "greeting", mimeType: "text/plain", load: async () => ({ text: "Hello" }) });
server.addPrompt({
  name: "greet",
  description: "Asks for a greeting.",
  arguments: [{ name: "name", description: "Whom to greet", required: true }],
  load: async ({ name }) => `Greet ${name}.`,
});
const port = Number(process.argv[2] ?? 0);
server.start(port === 0 ? { transportType: "stdio" } : { transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } });
