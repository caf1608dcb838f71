// Half of these tests fail, for what their servers send besides the responses.
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { testClient } from "mcproof/jest";

const faulty = [process.execPath, new URL("faulty.mjs", import.meta.url).pathname];

for (const tool of ["sound", "noise", "twice", "end", "malformed"]) {
  it(`${tool}, closed`, async () => {
    const client = await testClient(faulty);
    await client.call(tool);
    await client.close();
  });
}

it("large, closed", async () => {
  const client = await testClient(faulty);
  for (let call = 0; call < 8; call += 1) {
    await client.call("large");
  }
  await client.close();
});

it("noise, and a failure of its own", async () => {
  const client = await testClient(faulty);
  try {
    await client.call("noise");
    expect("its own failure").toBe("told");
  } finally {
    await client.close();
  }
});

it("late noise, closed", async () => {
  const client = await testClient([...faulty, "late"]);
  await client.call("sound");
  await client.close();
});

it("malformed, left out", async () => {
  const client = await testClient(faulty, { skipRules: ["message-matches-schema"] });
  await client.call("malformed");
  await client.close();
});

it("noise, allowed", async () => {
  const client = await testClient(faulty, { allowFaults: true });
  await client.call("noise");
  await client.close();
});

it("crash, expected", async () => {
  const client = await testClient(faulty);
  await expect(client.call("crash")).rejects.toThrow("exited with code 9");
  expect(client.ended).toContain("exited with code 9");
  await client.close();
});

it("crash, instead of an error", async () => {
  const client = await testClient(faulty);
  await expect(client.call("crash")).rejects.toThrow();
  await client.close();
});

describe("shared", () => {
  let client;
  beforeAll(async () => {
    client = await testClient(faulty);
  });
  afterAll(async () => {
    await client.close();
  });
  for (const tool of ["sound", "noise", "sound again", "end"]) {
    it(tool, async () => {
      await client.call(tool);
    });
  }
});
