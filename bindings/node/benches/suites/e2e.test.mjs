// The six end-to-end tests, forty times, in the way that the variable WAY says: `sdk` is what one writes with the TypeScript SDK,
// `fresh` the same with this package, both with a server for each test; `shared` runs at once against one server for all.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describeTransport } from "mcproof/vitest";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const [command, ...args] = JSON.parse(process.env.SERVER);
const ROUNDS = 40;

const ways = {
  sdk() {
    const session = {};
    beforeEach(async () => {
      session.client = new Client({ name: "bench", version: "1" });
      await session.client.connect(new StdioClientTransport({ command, args, env: process.env }));
    });
    afterEach(() => session.client.close());
    suite(session, it);
  },
  fresh() {
    describeTransport("fresh", { stdio: [command, ...args] }, (session) => suite(session, it));
  },
  shared() {
    describeTransport("shared", { stdio: [command, ...args] }, (session) => suite(session, it.concurrent), { isolation: "suite" });
  },
};

describe(process.env.WAY, ways[process.env.WAY]);

function suite(session, it) {
  for (let round = 0; round < ROUNDS; round += 1) {
    it(`${round}: the handshake is complete`, async () => {
      expect(session.client.getServerVersion().name).not.toBe("");
      expect(session.client.getServerCapabilities().tools).toBeTypeOf("object");
    });

    it(`${round}: the list of tools is not empty`, async () => {
      const { tools } = await session.client.listTools();
      expect(tools.length).toBeGreaterThan(0);
    });

    it(`${round}: each tool has its required fields`, async () => {
      const { tools } = await session.client.listTools();
      for (const tool of tools) {
        expect(tool.name.length).toBeGreaterThan(0);
        expect(tool.description).toBeTypeOf("string");
        expect(tool.inputSchema.type).toBe("object");
      }
    });

    it(`${round}: a call gives text`, async () => {
      const { content } = await session.client.callTool({ name: "echo", arguments: { message: "hello from e2e" } });
      expect(content[0].type).toBe("text");
      expect(content[0].text).toContain("hello from e2e");
    });

    it(`${round}: a missing argument is refused`, async () => {
      expect(await fails({ name: "echo", arguments: {} })).toBe(true);
    });

    it(`${round}: an unknown tool fails`, async () => {
      expect(await fails({ name: "nonexistent_tool_xyz", arguments: {} })).toBe(true);
    });
  }

  async function fails(call) {
    return session.client.callTool(call).then((result) => result.isError === true, () => true);
  }
}
