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
    expect(await message(expect(answer.payload.total).toMatchExpectation(3))).toContain("undefined");
    expect(await message(expect(answer).not.toMatchExpectation({ sum: 3 }))).toContain("expected not to meet");
    expect(await message(expect(answer).toMatchExpectation({ sum: { $regx: "x" } }))).toContain("$regex");
  });

  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = { again: cyclic };
  const lost: [string, unknown, RegExp][] = [
    ["undefined", undefined, /is undefined/],
    ["a function", () => 1, /is a function/],
    ["a symbol", Symbol("x"), /is a symbol/],
    ["a BigInt", 1n, /is a BigInt/],
    ["NaN", Number.NaN, /is NaN/],
    ["Infinity", -Infinity, /is -Infinity/],
    ["a Map", new Map([["sum", 4]]), /is a Map/],
    ["a Set", new Set([1]), /is a Set/],
    ["a typed array", Uint16Array.of(1), /is a Uint16Array/],
    ["a promise", Promise.resolve(3), /is a promise: await it/],
    ["a date that is none", new Date(Number.NaN), /is a Date that is null in JSON/],
    ["an error", new Error("x"), /is an Error/],
    ["a matcher of the runner", expect.any(Number), /a matcher of the test runner/],
    ["an instance with private members only", new (class Sum { #sum = 4; read() { return this.#sum; } })(), /an instance of Sum/],
    ["a hole", [1, , 2], /\[1\]` of .* is undefined/],
    ["a cycle", cyclic, /inside of itself/],
    ["a key that is a symbol", { [Symbol("sum")]: 4 }, /the key Symbol\(sum\)/],
  ];
  it.each(lost)("%s is refused where it is expected or compared, at any depth and under not", async (_, value, words) => {
    const answer = await client.call("add", { a: 1, b: 2 });
    const nested = { items: [{ sum: value }] };
    const place = /`items\[0\]\.sum/;
    for (const claim of [
      () => expect(answer).toMatchExpectation(nested),
      () => expect(answer).not.toMatchExpectation(nested),
      () => expect(answer).toHaveStructuredContent(nested),
      () => expect(nested).toMatchExpectation({}),
      () => expect(nested).not.toMatchExpectation({ other: 1 }),
      () => expect(nested).toMatchSnapshotFile("/nowhere/at-all.json", { update: true }),
      () => client.expect(nested, {}),
      () => client.expect({}, nested),
    ]) {
      const text = await message(claim());
      () => expect(text).toMatch(words);
      () => expect(text).toMatch(place);
    }
    for (const claim of [
      () => expect(answer).toMatchExpectation(value),
      () => expect(answer).not.toMatchExpectation(value),
      () => expect(answer).not.toHaveStructuredContent(value),
      () => expect(answer).not.toHaveText(value as string),
      () => expect(answer).not.toBeToolError(value as string),
      () => expect(value).not.toMatchExpectation(3),
      () => client.expect(value, { $any: true }),
    ]) {
      expect(await message(claim())).toMatch(/ (is|of \w+ is) (undefined|an? |-?Infinity|NaN|inside)/);
    }
  });

  it("values that JSON has a form for are compared by it", async () => {
    const date = new Date(0);
    await expect({ at: date, url: new URL("http://a/"), none: Object.create(null), made: new (class { sum = 3; })() }).toMatchExpectation({
      at: "1970-01-01T00:00:00.000Z",
      url: "http://a/",
      none: {},
      made: { sum: 3 },
    });
    await expect({ at: date.toJSON() }).toMatchExpectation({ at: date });
    await expect({ at: "2000" }).not.toMatchExpectation({ at: date });
    await expect(await client.request({ method: "tools/list" })).toMatchExpectation({ result: { tools: { $len: { $gt: 0 } } } });
    // What another client was handed over in memory.
    await expect({ content: [{ type: "text", text: "3" }], structuredContent: undefined }).toHaveText("3");
  });

  it("a promise is no value, for any matcher", async () => {
    for (const claim of [
      (forgotten: unknown) => expect(forgotten).toMatchExpectation({}),
      (forgotten: unknown) => expect(forgotten).not.toMatchExpectation({ sum: 3 }),
      (forgotten: unknown) => expect(forgotten).not.toHaveStructuredContent(),
      (forgotten: unknown) => expect(forgotten).not.toHaveText("3"),
      (forgotten: unknown) => expect(forgotten).not.toBeToolError(),
      (forgotten: unknown) => expect(forgotten).not.toBeRpcError(),
      (forgotten: unknown) => expect(forgotten).not.toMatchContract("mcproof.lock"),
      (forgotten: unknown) => expect(forgotten).not.toPassCheck(),
      (forgotten: unknown) => expect(forgotten).toMatchSnapshotFile("/nowhere/at-all.json", { update: true }),
    ]) {
      expect(await message(claim(client.call("add", { a: 1, b: 2 })))).toMatch(/the value of \w+ is a promise: await it/);
    }
    await expect(client.call("add", { a: 1, b: 2 })).resolves.toMatchExpectation({ sum: 3 });
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
    await expect(answer).toBeToolError("by zero");
    await expect(answer).toBeToolError("/^division/i");
    await expect(answer).not.toBeToolError(/overflow/);
    await expect(await client.call("add", { a: 1, b: 2 })).not.toBeToolError();
    expect(await message(expect(answer).toBeToolError("all is well"))).toMatch(/all is well.*division by zero/s);
  });

  it("a call that failed meets no expectation but that of its failure", async () => {
    const failed = { content: [{ type: "text", text: "3 is not allowed" }], structuredContent: { sum: 3 }, isError: true };
    for (const claim of [
      () => expect(failed).toMatchExpectation({ sum: 3 }),
      () => expect(failed).toMatchExpectation({ sum: { $any: true } }),
      () => expect(failed).toHaveStructuredContent({ sum: 3 }),
      () => expect(failed).toHaveStructuredContent(),
      () => expect(failed).toHaveText(/3/),
    ]) {
      expect(await message(claim())).toContain("expected success, found an `isError` result: 3 is not allowed");
    }
    for (const claim of [
      () => expect(failed).not.toMatchExpectation({ sum: 3 }),
      () => expect(failed).not.toHaveStructuredContent({ sum: 3 }),
      () => expect(failed).not.toHaveText(/3/),
    ]) {
      expect(await message(claim())).toContain("expected not to");
    }
    await expect(failed).not.toMatchExpectation({ sum: 4 });
    await expect(failed).not.toHaveText(/4/);
    await expect(failed).toBeToolError(/3/);
    await expect(failed).not.toBeToolError(/4/);
    await expect({ ...failed, isError: false }).toMatchExpectation({ sum: 3 });
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
