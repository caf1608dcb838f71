// What the types promise. Nothing runs this: tsc reads it, and each line that has to be refused says so.
import type { McpServer as Server1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { McpServer as Server2 } from "@modelcontextprotocol/server";
import { check, startHttpServer, testClient, type CallToolResult, type Client, type McproofError } from "mcproof";
import { expect as jestExpect } from "@jest/globals";
import "mcproof/jest";
import { describeTransport } from "mcproof/vitest";
import { expect } from "vitest";

export async function targets(server1: Server1, server2: Server2): Promise<Client[]> {
  return [
    await testClient(server1),
    await testClient(server1.server, { era: "legacy", answers: { elicitation: "accept", sampling: () => ({}) } }),
    await testClient(server2),
    await testClient(() => server2),
    await testClient(["node", "server.js"], { timeouts: { requestMs: 5 } }),
    await testClient("https://example.com/mcp"),
    await testClient({ url: new URL("https://example.com/mcp"), headers: { authorization: "x" }, transport: "http" }),
    await testClient({ server: "shop", config: "mcp.json" }),
    // @ts-expect-error a number is no server
    await testClient(5),
    // @ts-expect-error there is no such era
    await testClient("shop", { era: "future" }),
    (await startHttpServer("server.js")).client,
  ];
}

export async function calls(client: Client): Promise<void> {
  const { payload } = await client.call<{ sum: number }>("add", { a: 1 });
  payload.sum.toFixed();
  // @ts-expect-error the payload has been told
  payload.total;
  const result: CallToolResult = await client.callTool({ name: "add", arguments: { a: 1 } });
  // @ts-expect-error not every block has a text
  result.content[0].text.trim();
  if (result.content[0].type === "text") {
    result.content[0].text.trim();
  }
  const error: McproofError["kind"] = "refused";
  await expect(result).toBeToolError(/no/);
  await expect(result).not.toMatchExpectation({ error });
  await expect(client).toMatchContract("mcproof.lock", { deny: "breaking" });
  // @ts-expect-error a pattern is no code
  await expect(client.ping()).rejects.toMatchContract(5);
  await jestExpect(result).toHaveText("x");
  await jestExpect(result).not.toHaveStructuredContent();
  // @ts-expect-error a server object cannot be explored
  await check({ connect: async () => undefined });
  describeTransport("x", { stdio: ["node", "server.js"], sse: { command: "x", url: "http://127.0.0.1:${port}/sse" } }, ({ client }) => {
    client.getServerVersion()?.name.trim();
  });
}
