// Drives a server object and tells what it gave, and how many processes that took.
import { readFileSync } from "node:fs";
import { isMainThread, parentPort } from "node:worker_threads";
import { testClient } from "mcproof";
import { calculator1 } from "./servers.mjs";

const client = await testClient(calculator1());
const sums = await Promise.all([1, 2, 3].map(async (a) => (await client.call("add", { a, b: 1 })).payload.sum));
const silent = await client.call("hang", {}, { timeoutMs: 50 }).then(() => "answered", (error) => error.kind);
const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8").trim().split(" ").filter(Boolean).length;
const told = { sums, silent, children };
if (isMainThread) {
  await client.close();
  console.log(JSON.stringify(told));
} else {
  parentPort.postMessage(told);
  // Ended by the other thread while this waits.
  await client.call("hang");
}
