// One suite over every transport. Knows the few functions that runners have in common, none of the runners.
import { Client } from "./client.js";
import { assertClientOptions } from "./names.js";
import type { ClientOptions } from "./options.js";
import type { E2EHandle } from "./servers.js";
import type { Target, WireTarget } from "./target.js";

export interface Framework {
  describe(name: string, body: () => void): void;
  beforeAll(hook: () => Promise<void>, timeout?: number): void;
  afterAll(hook: () => Promise<void>, timeout?: number): void;
  beforeEach(hook: () => Promise<void>, timeout?: number): void;
  afterEach(hook: () => Promise<void>, timeout?: number): void;
}

/** Where a server is, or a function that starts one: `() => startSseServer("dist/server.js")`, `() => createServer()`. */
export type Source = WireTarget | (() => unknown);

export interface SuiteOptions extends ClientOptions {
  /** `test` (the default) opens a session for each test, `suite` one per transport: for tests that leave nothing behind. */
  isolation?: "test" | "suite";
}

export interface SuiteContext {
  /** The name of the transport, as it was given. */
  readonly transport: string;
  /** The session of the running test. */
  readonly client: Client;
  readonly baseUrl: string;
}

/** Describes one suite over every transport; a function or a single target is a suite of its own. */
export type DescribeTransport = (
  name: string,
  servers: Record<string, Source> | (() => unknown),
  suite: (context: SuiteContext) => void,
  options?: SuiteOptions,
) => void;

/** A server takes a while to start on a busy machine; that is not for the time of the first test. */
const START_MS = 60_000;

export function describeTransportWith(framework: Framework): DescribeTransport {
  return (name, servers, suite, options = {}) => {
    assertClientOptions(options, ["isolation"]);
    if (typeof servers === "function") {
      one(framework, name, name, servers, suite, options);
      return;
    }
    framework.describe(name, () => {
      for (const [transport, source] of Object.entries(servers)) {
        one(framework, transport, transport, source, suite, options);
      }
    });
  };
}

function one(
  framework: Framework,
  title: string,
  transport: string,
  source: Source,
  suite: (context: SuiteContext) => void,
  { isolation = "test", ...options }: SuiteOptions,
): void {
  framework.describe(title, () => {
    let started: Pick<E2EHandle, "client" | "baseUrl" | "teardown"> | undefined;
    const running = (): NonNullable<typeof started> => {
      if (!started) {
        throw new Error("the server is available inside tests and hooks only, not in `describe`");
      }
      return started;
    };
    const open = async (): Promise<void> => {
      started = await start(source, options);
    };
    const close = async (): Promise<void> => {
      await started?.teardown();
      started = undefined;
    };
    const [before, after] = isolation === "suite" ? [framework.beforeAll, framework.afterAll] : [framework.beforeEach, framework.afterEach];
    before(open, START_MS);
    after(close, START_MS);
    suite({
      transport,
      get client() {
        return running().client;
      },
      get baseUrl() {
        return running().baseUrl;
      },
    });
  });
}

async function start(source: Source, options: ClientOptions): Promise<Pick<E2EHandle, "client" | "baseUrl" | "teardown">> {
  const made: unknown = typeof source === "function" ? await (source as () => unknown)() : source;
  if (typeof made === "object" && made !== null && "client" in made && made.client instanceof Client) {
    return made as E2EHandle;
  }
  const client = made instanceof Client ? made : await Client.open(made as Target, options);
  return {
    client,
    baseUrl: client.url ? new URL(client.url).origin : `${client.transport}://`,
    teardown: async () => {
      await client.close();
    },
  };
}
