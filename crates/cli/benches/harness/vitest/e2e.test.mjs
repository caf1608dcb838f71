// The six end-to-end tests of examples/e2e.mcproof.yaml as one would write them with vitest and the TypeScript SDK,
// repeated, each on a fresh server over stdio.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const repeat = Number(process.env.REPEAT);

for (let round = 0; round < repeat; round += 1) {
  describe(`round ${round}`, () => {
    let client;

    beforeEach(async () => {
      client = new Client({ name: "vitest", version: "1" });
      await client.connect(new StdioClientTransport({ command: process.env.MCPROOF, args: ["demo", "tracker"] }));
    });

    afterEach(async () => {
      await client.close();
    });

    test("the handshake is complete", () => {
      expect(client.getServerVersion().name).not.toBe("");
      expect(client.getServerCapabilities().tools).toBeTypeOf("object");
    });

    test("the list of tools is not empty", async () => {
      const { tools } = await client.listTools();
      expect(tools.length).toBeGreaterThan(0);
    });

    test("each tool has its required fields", async () => {
      const { tools } = await client.listTools();
      for (const tool of tools) {
        expect(tool.name.length).toBeGreaterThan(0);
        expect(tool.description).toBeTypeOf("string");
        expect(tool.inputSchema.type).toBe("object");
      }
    });

    test("a call gives text", async () => {
      const { content } = await client.callTool({ name: "echo", arguments: { message: "hello from e2e" } });
      expect(content[0].type).toBe("text");
      expect(content[0].text).toContain("hello from e2e");
    });

    test("a missing argument is refused", async () => {
      expect(await fails({ name: "echo", arguments: {} })).toBe(true);
    });

    test("an unknown tool fails", async () => {
      expect(await fails({ name: "nonexistent_tool_xyz", arguments: {} })).toBe(true);
    });

    async function fails(call) {
      try {
        return (await client.callTool(call)).isError === true;
      } catch {
        return true;
      }
    }
  });
}
