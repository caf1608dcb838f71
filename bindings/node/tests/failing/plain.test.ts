// Fails on purpose: runner.test.ts looks at what vitest prints of it.
import { describeTransport, testClient } from "mcproof/vitest";
import { expect, it } from "vitest";
import { calculator1 } from "../servers.mjs";

it("a plain assertion", async () => {
  await using client = await testClient(calculator1());
  const { text } = await client.call("add", { a: 20, b: 22 });
  expect(text).toBe("43");
});

it("a matcher", async () => {
  await using client = await testClient(calculator1());
  await expect(await client.call("divide", { a: 7, b: 0 })).toMatchExpectation({ $text: "8" });
});

it("an error", async () => {
  await using client = await testClient(calculator1());
  await client.request({ method: "no/such/method" });
});

describeTransport("shared", { "in-memory": () => calculator1() }, (session) => {
  it("passes", async () => {
    await session.client.call("add", { a: 1000, b: 1 });
  });
  it("fails with its own frames only", async () => {
    expect((await session.client.call("add", { a: 500, b: 5 })).text).toBe("the sum");
  });
}, { isolation: "suite" });
