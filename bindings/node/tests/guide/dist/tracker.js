// The server that the guide describes: an issue tracker on the low-level server of the TypeScript SDK, version 1. Where an
// argument is missing its tools give an error as content; a wrong type and an unknown tool are errors of the protocol.
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js";

const string = { type: "string" };
const number = { type: "number" };

const tools = [
  tool("echo", "Gives back a message", { message: string }, ["message"], ({ message }) => message),
  tool("create_issue", "Opens an issue in a project", { project: string, title: string, body: string }, ["project", "title"], create),
  tool("get_issue", "Looks up one issue", { id: string }, ["id"], get),
  tool("list_issues", "Lists the issues of a project", { project: string, limit: number }, ["project"], list),
];

export function createServer() {
  const server = new Server({ name: "tracker", version: "1.0.0" }, { capabilities: { tools: {} } });
  const issues = new Map([["ISSUE-1", { id: "ISSUE-1", project: "test-project", title: "It does not start" }]]);

  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
  }));

  server.setRequestHandler(CallToolRequestSchema, ({ params: { name, arguments: given = {} } }) => {
    const called = tools.find((each) => each.name === name);
    if (!called) {
      throw new McpError(ErrorCode.InvalidParams, `no tool is called ${name}`);
    }
    const { properties, required } = called.inputSchema;
    for (const [argument, value] of Object.entries(given)) {
      if (properties[argument] && typeof value !== properties[argument].type) {
        throw new McpError(ErrorCode.InvalidParams, `${argument} is not a ${properties[argument].type}`);
      }
    }
    const missing = required.filter((argument) => given[argument] === undefined);
    if (missing.length > 0) {
      return text(`missing: ${missing.join(", ")}`, true);
    }
    try {
      return text(called.run(given, issues), false);
    } catch (error) {
      return text(error.message, true);
    }
  });

  return server;
}

function tool(name, description, properties, required, run) {
  return { name, description, inputSchema: { type: "object", properties, required }, run };
}

function text(text, isError) {
  return { content: [{ type: "text", text }], isError };
}

function create({ project, title, body }, issues) {
  const issue = { id: `ISSUE-${issues.size + 1}`, project, title, body };
  issues.set(issue.id, issue);
  return JSON.stringify(issue);
}

function get({ id }, issues) {
  if (!issues.has(id)) {
    throw new Error(`issue ${id} not found`);
  }
  return JSON.stringify(issues.get(id));
}

function list({ project, limit = 100 }, issues) {
  return JSON.stringify([...issues.values()].filter((issue) => issue.project === project).slice(0, limit));
}
