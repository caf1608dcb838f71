// How long a call takes through this package, next to the SDK's own client: to a server object in memory (where the SDK has its
// InMemoryTransport) and to a server over stdio. Both take turns in short rounds, so that what the machine does meanwhile hits both.
// Prints medians in microseconds, and the median of the rounds' ratios.
// A session this long is not kept whole, so that the wire of it cannot be judged (allowFaults).
import { performance } from "node:perf_hooks";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { binary, testClient } from "mcproof";
import { z } from "zod";

const ROUNDS = 100;
const CALLS = 50;

const [near, far] = InMemoryTransport.createLinkedPair();
await adder().connect(far);
await compare("in memory", await sdk(near), await testClient(adder(), { allowFaults: true }), { name: "add", arguments: { a: 1, b: 2 } });

const [command, ...args] = [binary(), "demo", "tracker"];
const stdio = new StdioClientTransport({ command, args });
await compare("over stdio", await sdk(stdio), await testClient([command, ...args], { allowFaults: true }), { name: "echo", arguments: { message: "hello" } });

async function compare(what, theirs, ours, call) {
  const ways = { sdk: () => theirs.callTool(call), mcproof: () => ours.callTool(call) };
  const one = { sdk: [], mcproof: [] };
  const many = { sdk: [], mcproof: [] };
  // The first rounds warm both up.
  for (let round = -20; round < ROUNDS; round += 1) {
    const turns = Object.entries(ways);
    for (const [name, way] of round % 2 === 0 ? turns : turns.reverse()) {
      const singles = [];
      for (let count = 0; count < CALLS; count += 1) {
        const started = performance.now();
        await way();
        singles.push(performance.now() - started);
      }
      const started = performance.now();
      await Promise.all(Array.from({ length: CALLS }, way));
      const together = (performance.now() - started) / CALLS;
      if (round >= 0) {
        one[name].push(median(singles));
        many[name].push(together);
      }
    }
  }
  print(`${what}, one call after the other`, one);
  print(`${what}, ${CALLS} calls at once, each`, many);
  await Promise.all([theirs.close(), ours.close()]);
}

async function sdk(transport) {
  const client = new Client({ name: "bench", version: "1" });
  await client.connect(transport);
  // Once it knows the output schemas its client holds results against them, which is part of what its calls cost.
  await client.listTools();
  return client;
}

function adder() {
  const server = new McpServer({ name: "adder", version: "1" });
  const schemas = { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() } };
  server.registerTool("add", { description: "Adds", ...schemas }, ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
    structuredContent: { sum: a + b },
  }));
  return server;
}

function print(what, { sdk, mcproof }) {
  const ratio = median(mcproof.map((time, round) => time / sdk[round]));
  const [theirs, ours] = [sdk, mcproof].map((times) => (median(times) * 1000).toFixed(0));
  console.log(`${what}: SDK ${theirs} us, mcproof ${ours} us, ratio ${ratio.toFixed(2)}`);
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
}
