// A client of the TypeScript SDK: prints all that a server gives it. Arguments: a tool and its arguments as JSON, then the server's command.
// The SDK is that of the package whose folder is in SDK.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.env.SDK}/`);
const load = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/client/${path}`)).href);
const [{ Client }, { StdioClientTransport }] = [await load("index.js"), await load("stdio.js")];

const [given, command, ...args] = process.argv.slice(2);
const tool = JSON.parse(given);
const client = new Client({ name: "recorded", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const print = (value) => console.log(JSON.stringify(value));
print([client.getServerVersion(), client.getServerCapabilities(), client.getInstructions()]);
print(await client.listTools());
if (tool) print(await client.callTool({ name: tool.tool, arguments: tool.arguments }));
if (client.getServerCapabilities().prompts) print(await client.listPrompts());
if (client.getServerCapabilities().resources) print(await client.listResources());
await client.close();
