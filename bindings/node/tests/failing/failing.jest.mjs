// Fails on purpose: runner.test.ts looks at what jest prints of it.
import { expect, it } from "@jest/globals";
import { testClient } from "mcproof/jest";
import { calculator1 } from "../servers.mjs";

it("a plain assertion", async () => {
  const client = await testClient(calculator1());
  const { text } = await client.call("add", { a: 20, b: 22 });
  await client.close();
  expect(text).toBe("43");
});
