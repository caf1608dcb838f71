// The plugin for jest: importing it registers the matchers, and failures of the importing file show the wire.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "@jest/globals";
import { shutdown } from "./index.js";
import { matchers, type McproofMatchers } from "./matchers.js";
import { describeTransportWith, type DescribeTransport } from "./suite.js";
import { endOpen, Witness } from "./witness.js";

export * from "./index.js";

declare module "expect" {
  interface Matchers<R extends void | Promise<void>, T = unknown> extends McproofMatchers<R> {}
}

expect.extend(matchers as unknown as Parameters<typeof expect.extend>[0]);

/** Servers that do not end by themselves are given some time. */
const END_MS = 60_000;

let witness: Witness | undefined;
beforeEach(() => {
  witness = new Witness();
});

// Sessions that the hooks of the file have closed by now still have their transcripts.
afterEach(async () => {
  const fault = await witness?.fault();
  witness?.end();
  const error = failure();
  // The test's own failure comes first.
  if (fault && !error) {
    throw fault;
  }
  if (!error || /^ +wire {2}/m.test(error.message)) {
    return;
  }
  const transcript = await witness?.transcript();
  if (transcript) {
    error.stack = `${error.message}\n\n${transcript}\n\n${(error.stack ?? "").replace(error.message, "").replace(/^.*\n/, "")}`;
  }
});

// jest gives each file modules of its own, and so an engine of its own. What nobody has closed by now is closed here, and judged until
// its end: hooks of the file run later.
afterAll(async () => {
  const fault = await endOpen();
  await shutdown();
  if (fault) {
    throw fault;
  }
}, END_MS);

/** The first error of the running test. jest tells hooks nothing of it; its runner keeps it under a symbol, if it is jest-circus. */
function failure(): Error | undefined {
  const symbol = Object.getOwnPropertySymbols(globalThis).find((each) => each.description === "JEST_STATE_SYMBOL");
  const state = symbol && (globalThis as unknown as Record<symbol, { currentlyRunningTest?: { errors: unknown[] } }>)[symbol];
  const first = state?.currentlyRunningTest?.errors[0];
  const error: unknown = Array.isArray(first) ? first[0] : first;
  return error instanceof Error ? error : undefined;
}

/** One suite over every transport. */
export const describeTransport: DescribeTransport = describeTransportWith({ describe, beforeAll, afterAll, beforeEach, afterEach });
