// Run by jest: the matchers, and a suite over two transports.
import { expect, it, describe } from "@jest/globals";
import { describeTransport, testClient } from "mcproof/jest";
import { calculator1 } from "../servers.mjs";

describe("under jest", () => {
  it("matchers ask the engine", async () => {
    const client = await testClient(calculator1());
    await expect(await client.call("add", { a: 1, b: 2 })).toMatchExpectation({ sum: 3 });
    await expect(await client.call("divide", { a: 1, b: 0 })).toBeToolError(/by zero/);
    await expect(client.request({ method: "no/such" })).rejects.toBeRpcError(-32601);
    await expect(expect(await client.call("add", { a: 1, b: 2 })).toMatchExpectation({ sum: 4 })).rejects.toThrow(/wire/);
    await client.close();
  });
});

describeTransport("one suite", { memory: () => calculator1(), factory: () => testClient(calculator1) }, (session) => {
  it("has a session", async () => {
    expect((await session.client.call("add", { a: 1, b: 2 })).text).toBe("3");
  });
});
