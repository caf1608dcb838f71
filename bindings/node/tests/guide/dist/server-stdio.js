import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createServer } from "./tracker.js";

await createServer().connect(new StdioServerTransport());
