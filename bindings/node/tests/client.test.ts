import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { check, McproofError, shutdown, spawn, testClient, type Client, type Target } from "mcproof";
import { afterEach, describe, expect, it, vi } from "vitest";
import { calculator1, calculator2 } from "./servers.mjs";

const script = (name: string): string => new URL(`guide/dist/${name}.js`, import.meta.url).pathname;

const open = new Set<Client>();

async function start(...given: Parameters<typeof testClient>): Promise<Client> {
  const client = await testClient(...given);
  open.add(client);
  return client;
}

afterEach(async () => {
  await Promise.all([...open].map((client) => client.close()));
  open.clear();
});

async function failure(promise: Promise<unknown>): Promise<McproofError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(McproofError);
  return error as McproofError;
}

describe("a server object of this process", () => {
  const targets: [string, Target, string][] = [
    ["a server of version 1", calculator1(), "legacy"],
    ["the low-level server of version 1", calculator1().server, "legacy"],
    ["a function that makes one of version 1", calculator1, "legacy"],
    ["a server of version 2", calculator2(), "legacy"],
    ["version 2 in the era that it prefers", (transport) => serveStdio(calculator2, { transport: transport as never }), "modern"],
  ];
  it.each(targets)("%s is driven in memory", async (_, target, era) => {
    const client = await start(target);
    expect([client.transport, client.era]).toEqual(["in-memory", era]);
    const { payload, text, isError, result, elapsedMs } = await client.call("add", { a: 2, b: 3 });
    expect([payload, text, isError]).toEqual([{ sum: 5, order: "ORD-23" }, "5", false]);
    expect(result.content[0]).toMatchObject({ type: "text", text: "5" });
    expect(elapsedMs).toBeGreaterThan(0);
    const { text: wire, faults } = await client.transcript();
    expect(wire).toContain('"name":"add"');
    expect(faults).toEqual([]);
  });

  it("says what it is", async () => {
    const client = await start(calculator1());
    expect(client.getServerVersion()).toMatchObject({ name: "calculator", version: "1.2.3" });
    expect(client.getServerCapabilities()?.tools).toBeDefined();
    expect(client.getInstructions()).toBe("Adds numbers");
    expect(client.handshake["protocolVersion"]).toBe(client.protocolVersion);
  });

  it("has tools, resources and prompts", async () => {
    const client = await start(calculator1());
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["add", "divide", "ask", "think", "count", "hang"]);
    expect((await client.listResources()).resources).toMatchObject([{ uri: "calculator://readme" }]);
    expect((await client.listResourceTemplates()).resourceTemplates).toEqual([]);
    expect((await client.readResource({ uri: "calculator://readme" })).contents[0]?.text).toBe("Adds.");
    expect((await client.listPrompts()).prompts).toMatchObject([{ name: "sum" }]);
    expect((await client.getPrompt({ name: "sum", arguments: { of: "1 and 2" } })).messages).toHaveLength(1);
    await client.ping();
  });

  it("may be used again by the next session", async () => {
    const server = calculator1();
    for (let round = 0; round < 3; round += 1) {
      const client = await testClient(server);
      expect((await client.call("add", { a: round, b: 1 })).payload.sum).toBe(round + 1);
      await client.close();
    }
  });

  it("that cannot be connected fails with its own words", async () => {
    const broken = (): never => {
      throw new Error("no database today");
    };
    const error = await failure(testClient(broken));
    expect(error.kind).toBe("not-open");
    expect(error.message).toContain("no database today");
  });
});

describe("what a server asks and says unasked", () => {
  it.each([
    [{ name: "Ada" }, "accept Ada"],
    ["decline" as const, "decline undefined"],
    [({ message }: { message: string }) => ({ action: "accept", content: { name: message } }), "accept Who are you?"],
  ])("is answered by %j", async (elicitation, text) => {
    const client = await start(calculator1(), { answers: { elicitation } });
    expect((await client.call("ask")).text).toBe(text);
  });

  it.each([
    ["declared values", { sampling: "four", roots: ["file:///sums"] }],
    [
      "functions",
      {
        sampling: ({ maxTokens }: { maxTokens: number }) => ({ role: "assistant", model: `m${maxTokens}`, content: { type: "text", text: "four" } }),
        roots: async () => ({ roots: [{ uri: "file:///sums" }] }),
      },
    ],
  ])("is answered for models and folders by %s", async (_, answers) => {
    const client = await start(calculator1(), { answers });
    expect((await client.call("think")).text).toBe("four in file:///sums");
  });

  it("is answered differently later", async () => {
    const client = await start(calculator1(), { answers: { elicitation: "decline" } });
    await client.setAnswers({ elicitation: async () => ({ action: "cancel" }) });
    expect((await client.call("ask")).text).toBe("cancel undefined");
  });

  it("gets the error that a callback throws", async () => {
    const elicitation = (): never => {
      throw Object.assign(new Error("nobody is here"), { code: -32001 });
    };
    const client = await start(calculator1(), { answers: { elicitation } });
    expect((await client.call("ask")).text).toContain("nobody is here");
  });

  it("reaches the test as progress and notifications, before the answer", async () => {
    const client = await start(calculator1());
    const seen: unknown[] = [];
    client.onNotification("notifications/message", ({ data }) => seen.push(data));
    await client.call("count", {}, { onProgress: ({ progress }) => seen.push(progress) });
    expect(seen).toEqual([1, 2, 3, "counted"]);
    expect((await client.waitForNotification("notifications/message")).params).toMatchObject({ data: "counted" });
    expect((await failure(client.waitForNotification("notifications/message", { timeoutMs: 10 }))).kind).toBe("unanswered");
  });
});

describe("a handler that throws", () => {
  const unexpected = (): never => {
    throw new Error("not expected");
  };
  const later = async (): Promise<never> => unexpected();

  it.each([unexpected, later])("fails the call whose progress it is told, %#", async (onProgress) => {
    const client = await start(calculator1());
    await expect(client.call("count", {}, { onProgress })).rejects.toThrow("not expected");
    expect((await client.call("divide", { a: 1, b: 2 })).text).toBe("0.5");
  });

  it("fails the call during which a notification comes, and no other", async () => {
    const client = await start(calculator1());
    const end = client.onNotification("notifications/message", unexpected);
    await expect(client.call("count", {}, { onProgress: () => undefined })).rejects.toThrow("not expected");
    end();
    expect((await client.call("divide", { a: 1, b: 2 })).text).toBe("0.5");
  });
});

describe("a request that fails", () => {
  it("with a JSON-RPC error has the server's code, and shows the wire", async () => {
    const client = await start(["node", script("server-stdio")]);
    const error = await failure(client.call("nobody"));
    expect([error.kind, error.code]).toEqual(["refused", -32602]);
    expect(error.error?.message).toContain("no tool is called nobody");
    expect(error.message).toMatch(/^ +wire .*→ tools\/call #\d+ /ms);
    expect(error.stack).toContain("client.test.ts");
  });

  it("for want of an answer says how long it waited", async () => {
    const client = await start(calculator1());
    const error = await failure(client.call("hang", {}, { timeoutMs: 50 }));
    expect(error.kind).toBe("unanswered");
    expect(error.message).toContain("tools/call");
  });

  it("because it was canceled tells the server", async () => {
    const client = await start(calculator1());
    const abort = new AbortController();
    const called = client.call("hang", {}, { signal: abort.signal });
    await client.ping();
    abort.abort("enough");
    expect((await failure(called)).kind).toBe("canceled");
    expect((await client.transcript()).text).toContain("notifications/cancelled");
  });

  it("because the server crashed says so", async () => {
    const crashing = "process.stdin.once('data', () => { console.error('out of luck'); process.exit(3) })";
    const error = await failure(testClient([process.execPath, "-e", crashing]));
    expect(error.kind).toBe("not-open");
    expect(error.message).toContain("out of luck");
  });

  it("on a closed session says that it is gone", async () => {
    const client = await testClient(calculator1());
    await client.close();
    await client.close();
    expect((await failure(client.ping())).kind).toBe("gone");
  });
});

describe("what is given", () => {
  it("reaches the server, or is refused: JSON loses nothing in silence", async () => {
    const client = await start(calculator1());
    for (const lost of [Number.NaN, new Map(), Promise.resolve(1), () => 1, Symbol("x"), 1n, [undefined]]) {
      await expect(client.call("add", { a: 1, b: lost })).rejects.toThrow(/`arguments\.b(\[0\])?` of the request `call` is /);
    }
    // As everywhere in JavaScript, an argument that is undefined is none.
    expect((await client.call("divide", { a: 1, b: 2, c: undefined })).text).toBe("0.5");
  });

  it("has names that are known", async () => {
    const client = await start(calculator1());
    const as = <T>(options: object): T => options as T;
    await expect(testClient(calculator1(), as({ timeout: 1 }))).rejects.toThrow("a client has no option `timeout`; it has `era`");
    await expect(testClient(calculator1(), as({ timeouts: { request: 1 } }))).rejects.toThrow("no option `request`; it has `connectMs`");
    await expect(testClient(calculator1(), as({ timeouts: 1 }))).rejects.toThrow("`timeouts` of a client has options by name, in an object, not as 1");
    await expect(testClient(calculator1(), as({ answers: { elicit: "accept" } }))).rejects.toThrow("no option `elicit`");
    await expect(testClient(as({ command: "node", arg: ["x"] }))).rejects.toThrow("a command has no option `arg`");
    await expect(spawn(as({ command: "node", url: "http://127.0.0.1:${port}/", timeout: 1 }))).rejects.toThrow("no option `timeout`");
    for (const request of [
      () => client.call("add", { a: 1, b: 2 }, as({ timeout: 500 })),
      () => client.listTools(as({ timeout: 500 })),
      () => client.raw("x", as({ timeout: 500 })),
      () => client.waitForNotification("x", as({ timeout: 500 })),
      () => client.check(as({ onyl: [] })),
      () => client.diff("mcproof.lock", as({ denied: "any" })),
      () => client.transcript(as({ until: 5 })),
    ]) {
      await expect((async () => request())()).rejects.toThrow(/`(timeout|onyl|denied|until)`/);
    }
  });
});

describe("the raw wire", () => {
  it("takes a message as it stands, and gives the error as the answer", async () => {
    const client = await start(["node", script("server-stdio")]);
    const { error } = await client.raw({ jsonrpc: "2.0", id: 77, method: "no/such" });
    expect(error?.code).toBe(-32601);
    await client.raw("not json\n", { wait: false });
    const { result, frame } = await client.request({ method: "tools/list" });
    expect(result["tools"]).toHaveLength(4);
    expect(frame).toBeGreaterThan(0);
    expect((await client.transcript()).text).toContain("not json");
  });
});

describe("the wire of a server in memory", () => {
  it("may be broken without breaking the test", async () => {
    const client = await start(calculator1());
    await client.raw("not json\n", { wait: false });
    await client.raw(Uint8Array.of(0xff, 0x0a), { wait: false });
    expect((await client.call("divide", { a: 1, b: 2 })).text).toBe("0.5");
  });

  it("is printed as it happens, if asked", async () => {
    const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    const client = await start(calculator1(), { trace: true, secrets: ["hunter2"] });
    await client.call("divide", { a: 1, b: 2, note: "hunter2" });
    await client.close();
    const text = written.mock.calls.join("");
    written.mockRestore();
    expect(text).toMatch(/^\+\d.* → .*"name":"divide".*\n\+/m);
    expect(text).not.toContain("hunter2");
  });

  it("tells no secret in an answer, unless a test wants it", async () => {
    for (const showSecrets of [undefined, true]) {
      const client = await start(calculator1(), { secrets: ["0.125"], showSecrets });
      expect((await client.call("divide", { a: 1, b: 8 })).text).toBe(showSecrets ? "0.125" : "[redacted]");
    }
  });

  it("does not mind a clock that the test has stopped", async () => {
    vi.useFakeTimers();
    try {
      const client = await start(calculator1);
      expect((await client.call("divide", { a: 1, b: 2 })).text).toBe("0.5");
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("servers of their own", () => {
  it("are shared by sessions over HTTP", async () => {
    const url = "http://127.0.0.1:${port}/mcp";
    const server = await spawn({ command: [process.execPath, script("server-http")], env: { PORT: "${port}" }, url });
    const [one, other] = await Promise.all([start(server), start(server)]);
    expect([one.url, other.url]).toEqual([server.url, server.url]);
    expect((await one.call("echo", { message: "hello" })).text).toBe("hello");
    await Promise.all([one.close(), other.close()]);
    expect((await server.stop()).left_behind).toEqual([]);
  });

  it("are found by their names in a configuration file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "mcproof-"));
    try {
      const config = join(folder, "mcp.json");
      writeFileSync(config, JSON.stringify({ mcpServers: { tracker: { command: process.execPath, args: [script("server-stdio")] } } }));
      await using client = await testClient({ server: "tracker", config });
      expect(client.getServerVersion()?.name).toBe("tracker");
      expect((await failure(testClient({ server: "nobody", config }))).message).toContain("nobody");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("see what the test has set in the environment meanwhile", async () => {
    await (await testClient(calculator1())).close();
    process.env["MCPROOF_TEST_ANSWER"] = "42";
    const print = "console.error('answer', process.env.MCPROOF_TEST_ANSWER); process.exit(1)";
    const error = await failure(testClient([process.execPath, "-e", print]));
    expect(error.message).toContain("answer 42");
  });

  it("are explored by check, and judged by what was on the wire", async () => {
    const report = await check({ command: ["node", script("server-stdio")] }, { only: ["tools"] });
    expect(report.text).not.toBe("");
    expect(report.ok, report.text).toBe(true);
    const client = await start(calculator1());
    const judged = await client.check();
    expect(judged.findings.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it("promise what their contract says", async () => {
    const client = await start(calculator1());
    const { key, contract, hashes } = await client.contract();
    expect(key).toMatch(/^legacy/);
    expect(JSON.stringify(contract)).toContain("divide");
    expect(await client.hash()).toEqual(hashes);
  });
});

it("a program that is not mcproof is told by its name", async () => {
  await shutdown();
  const named = process.env["MCPROOF_BINARY"];
  try {
    for (const [program, words] of [["/nowhere/mcproof", "cannot start /nowhere/mcproof"], ["/bin/false", "ended with exit code 1"]] as const) {
      process.env["MCPROOF_BINARY"] = program;
      expect((await failure(testClient(calculator1()))).message).toContain(words);
    }
  } finally {
    delete process.env["MCPROOF_BINARY"];
    if (named) {
      process.env["MCPROOF_BINARY"] = named;
    }
  }
});

it("the engine starts again after its end", async () => {
  await shutdown();
  const client = await testClient(calculator1());
  expect((await client.call("divide", { a: 6, b: 3 })).text).toBe("2");
  await client.close();
});
