import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary, describeTransport, testClient, type Client } from "mcproof/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calculator1 } from "./servers.mjs";

const script = (name: string): string => new URL(`guide/dist/${name}.js`, import.meta.url).pathname;

describe("matchers", () => {
  let client: Client;
  beforeAll(async () => {
    client = await testClient(calculator1());
  });
  afterAll(() => client.close());

  /** The message of a matcher that should fail. */
  async function message(claim: Promise<unknown>): Promise<string> {
    return claim.then(
      () => expect.unreachable("the matcher passed"),
      (error: Error) => error.message,
    );
  }

  it("toMatchExpectation reads the language of the suites, and shows path, difference and wire", async () => {
    const answer = await client.call("add", { a: 1, b: 2 });
    await expect(answer).toMatchExpectation({ sum: 3, order: { $regex: "^ORD-" } });
    await expect(answer).toMatchExpectation({ order: /^ord-\d+$/i });
    await expect(answer.result).toMatchExpectation({ sum: { $gte: 3 } });
    await expect({ items: [1, 2] }).toMatchExpectation({ items: { $len: 2 } });
    await expect(answer).not.toMatchExpectation({ sum: 4 });
    const text = await message(expect(answer).toMatchExpectation({ sum: 4 }));
    expect(text).toMatch(/sum/);
    expect(text).toMatch(/wire .*tools\/call/s);
    expect(await message(expect(answer.payload).toMatchExpectation({ sum: 4 }))).toMatch(/wire .*tools\/call/s);
    expect(await message(expect(answer.payload.total).toMatchExpectation(3))).toContain("null");
    expect(await message(expect(answer).not.toMatchExpectation({ sum: 3 }))).toContain("expected not to meet");
    expect(await message(expect(answer).toMatchExpectation({ sum: { $regx: "x" } }))).toContain("$regex");
  });

  it("toHaveStructuredContent asks for it, and for what is in it", async () => {
    const answer = await client.call("add", { a: 1, b: 2 });
    await expect(answer).toHaveStructuredContent();
    await expect(answer).toHaveStructuredContent({ sum: 3 });
    await expect(await client.callTool({ name: "divide", arguments: { a: 1, b: 2 } })).not.toHaveStructuredContent();
  });

  it("toHaveText and toBeToolError match texts and patterns", async () => {
    await expect(await client.call("divide", { a: 1, b: 2 })).toHaveText("0.5");
    const answer = await client.call("divide", { a: 1, b: 0 });
    await expect(answer).toBeToolError();
    await expect(answer).toBeToolError(/DIVISION by zero/i);
    await expect(answer).not.toBeToolError(/overflow/);
    await expect(await client.call("add", { a: 1, b: 2 })).not.toBeToolError();
    expect(await message(expect(answer).toBeToolError("all is well"))).toMatch(/all is well.*division by zero/s);
  });

  it("toBeRpcError looks at what refused a request", async () => {
    const refused = client.request({ method: "no/such" });
    await expect(refused).rejects.toBeRpcError();
    await expect(refused).rejects.toBeRpcError(-32601);
    await expect(refused).rejects.toBeRpcError({ code: -32601, message: /not found/i });
    await expect(refused).rejects.not.toBeRpcError(-32602);
  });

  it("toMatchContract compares with a lock file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcproof-"));
    try {
      execFileSync(binary(), ["lock", "--", process.execPath, script("server-stdio")], { cwd: folder, stdio: "pipe" });
      await using tracker = await testClient([process.execPath, script("server-stdio")]);
      await expect(tracker).toMatchContract(join(folder, "mcproof.lock"));
      expect(await message(expect(client).toMatchContract(join(folder, "mcproof.lock")))).toContain("create_issue");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("toPassCheck judges sessions", async () => {
    await expect(client).toPassCheck();
  });

  it("toMatchSnapshotFile writes what is told to be written, and nothing else", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcproof-"));
    try {
      const file = join(folder, "sum.json");
      const answer = await client.call("add", { a: 1, b: 2 });
      expect(await message(expect(answer.payload).toMatchSnapshotFile(file))).toContain("sum.json");
      expect(existsSync(file)).toBe(false);
      await expect(answer.payload).toMatchSnapshotFile(file, { update: true });
      await expect(answer.payload).toMatchSnapshotFile(file);
      writeFileSync(file, JSON.stringify({ sum: 4 }));
      expect(await message(expect(answer.payload).toMatchSnapshotFile(file))).toMatch(/sum/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("describeTransport", () => {
  const sessions = new Map<string, Set<Client>>();
  describeTransport(
    "one session per transport",
    { "in-memory": () => calculator1(), stdio: [process.execPath, script("server-stdio")] },
    (session) => {
      it.each([1, 2, 3])("is shared by its tests, round %i", async () => {
        const seen = sessions.get(session.transport) ?? new Set();
        sessions.set(session.transport, seen.add(session.client));
        expect(session.client.transport).toBe(session.transport);
        expect((await session.client.listTools()).tools.length).toBeGreaterThan(0);
      });
    },
    { isolation: "suite" },
  );
  it("opened no more sessions than transports", () => {
    expect([...sessions].map(([transport, seen]) => [transport, seen.size])).toEqual([["in-memory", 1], ["stdio", 1]]);
  });
});
