// The plugin for vitest: importing it registers the matchers, and failures of the importing file show the wire.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import { shutdown } from "./index.js";
import { matchers, type McproofMatchers } from "./matchers.js";
import { describeTransportWith, type DescribeTransport } from "./suite.js";
import { endOpen, Witness } from "./witness.js";

export * from "./index.js";

// The one interface of its assertions whose type parameters are the same in every version.
declare global {
  namespace Chai {
    interface Assertion extends McproofMatchers<void> {}
  }
}

expect.extend(matchers);

/** Servers that do not end by themselves are given some time. */
const END_MS = 60_000;

/** An attempt of a test. With `retry` and `repeats` a test has several, and vitest keeps the errors of all of them together. */
interface Attempt {
  witness: Witness;
  /** How many errors there were before it. */
  earlier: number;
}

const attempts = new WeakMap<object, Attempt>();

// A worker outlives a vitest that is killed, until its test is done. What it has started does not: nobody reads the verdict.
if (process.channel) {
  process.once("disconnect", () => void shutdown());
}

beforeEach(({ task, onTestFailed, onTestFinished }) => {
  const witness = new Witness();
  const earlier = task.result?.errors?.length ?? 0;
  attempts.set(task, { witness, earlier });
  onTestFinished(() => witness.end());
  onTestFailed(async () => {
    const errors = task.result?.errors?.slice(earlier) ?? [];
    const [first] = errors;
    if (!first || errors.some((error) => showsWire(error.message))) {
      return;
    }
    const transcript = await witness.transcript();
    if (transcript !== "") {
      first.message = `${first.message}\n\n${transcript}`;
    }
  });
});

// Registered before all others, and so the last to run: clients that hooks close are closed by now.
afterEach(async ({ task }) => {
  const attempt = attempts.get(task);
  const fault = await attempt?.witness.fault();
  // The failure of the test itself comes first.
  if (fault && (task.result?.errors?.length ?? 0) === attempt?.earlier) {
    throw fault;
  }
});

// The last hook of the file for the same reason: what nobody has closed by now is closed here, and judged until its end.
afterAll(async () => {
  const fault = await endOpen();
  if (fault) {
    throw fault;
  }
}, END_MS);

/** Our own errors and matchers come with their frames. */
function showsWire(message: string): boolean {
  return /^ +wire {2}/m.test(message);
}

/** One suite over every transport. */
export const describeTransport: DescribeTransport = describeTransportWith({
  describe: (name, body) => void describe(name, body),
  beforeAll,
  afterAll,
  beforeEach,
  afterEach,
});
