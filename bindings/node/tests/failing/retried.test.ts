// Fails in each attempt, for what its server sends besides the responses; only the last test is sound in its second attempt.
import { expect, it } from "vitest";
import { testClient } from "mcproof/vitest";

const faulty = [process.execPath, new URL("faulty.mjs", import.meta.url).pathname];

async function call(tool: string): Promise<void> {
  const client = await testClient(faulty);
  await client.call(tool);
  await client.close();
}

it("noise in each attempt", { retry: 2 }, () => call("noise"));

let attempt = 0;
it("a failure of its own, then noise", { retry: 1 }, async () => {
  attempt += 1;
  await call(attempt === 1 ? "sound" : "noise");
  expect(attempt).toBe(2);
});

it("noise in each repetition", { repeats: 1 }, () => call("noise"));

let sound = 0;
it("noise in the first attempt only", { retry: 1 }, async () => {
  sound += 1;
  await call(sound === 1 ? "noise" : "sound");
});
