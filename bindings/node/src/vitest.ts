// The plugin for vitest: importing it registers the matchers, and failures of the importing file show the wire.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "vitest";
import { shutdown } from "./index.js";
import { matchers, type McproofMatchers } from "./matchers.js";
import { describeTransportWith, type DescribeTransport } from "./suite.js";
import { Witness } from "./witness.js";

export * from "./index.js";

// The one interface of its assertions whose type parameters are the same in every version.
declare global {
  namespace Chai {
    interface Assertion extends McproofMatchers<void> {}
  }
}

expect.extend(matchers);

const witnesses = new WeakMap<object, Witness>();

// A worker outlives a vitest that is killed, until its test is done. What it has started does not: nobody reads the verdict.
if (process.channel) {
  process.once("disconnect", () => void shutdown());
}

beforeEach(({ task, onTestFailed, onTestFinished }) => {
  const witness = new Witness();
  witnesses.set(task, witness);
  onTestFinished(() => witness.end());
  onTestFailed(async () => {
    const errors = task.result?.errors ?? [];
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
  const fault = await witnesses.get(task)?.fault();
  // The test's own failure comes first.
  if (fault && task.result?.state !== "fail" && !task.result?.errors?.length) {
    throw fault;
  }
});

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
