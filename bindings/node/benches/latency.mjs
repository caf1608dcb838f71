// How long a call to a server in memory takes through this package, next to the SDK's own client over its InMemoryTransport.
// Both take turns in one run, so that a busy machine is busy for both. Prints medians in microseconds, and their ratio.
import { performance } from "node:perf_hooks";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { testClient } from "mcproof";
import { z } from "zod";

const ROUNDS = 40;
const CALLS = 50;

const [near, far] = InMemoryTransport.createLinkedPair();
const sdk = new Client({ name: "bench", version: "1" });
await Promise.all([server().connect(far), sdk.connect(near)]);
// The list lets the SDK's client check results against their output schemas, as the engine's rules do with the transcript.
await sdk.listTools();
const ours = await testClient(server());

const ways = {
  sdk: () => sdk.callTool({ name: "add", arguments: { a: 1, b: 2 } }),
  mcproof: () => ours.callTool({ name: "add", arguments: { a: 1, b: 2 } }),
};
const one = { sdk: [], mcproof: [] };
const many = { sdk: [], mcproof: [] };
for (let round = -5; round < ROUNDS; round += 1) {
  for (const [name, call] of Object.entries(ways)) {
    const singles = [];
    for (let count = 0; count < CALLS; count += 1) {
      const started = performance.now();
      await call();
      singles.push(performance.now() - started);
    }
    const started = performance.now();
    await Promise.all(Array.from({ length: CALLS }, call));
    const together = (performance.now() - started) / CALLS;
    // The first rounds warm both up.
    if (round >= 0) {
      one[name].push(...singles);
      many[name].push(together);
    }
  }
}
print("one call after the other", one);
print(`${CALLS} calls at once, each`, many);
await ours.close();
await sdk.close();

function server() {
  const server = new McpServer({ name: "adder", version: "1" });
  const schemas = { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } };
  server.registerTool("add", { description: "Adds", ...schemas }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
    structuredContent: { sum: a + b },
  }));
  return server;
}

function print(what, times) {
  const [sdk, mcproof] = [times.sdk, times.mcproof].map((each) => each.sort((a, b) => a - b)[Math.floor(each.length / 2)] * 1000);
  console.log(`${what}: SDK ${sdk.toFixed(0)} us, mcproof ${mcproof.toFixed(0)} us, ratio ${(mcproof / sdk).toFixed(2)}`);
}
