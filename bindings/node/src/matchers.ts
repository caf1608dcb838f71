// Matchers for any runner with `expect.extend`. The engine judges; each matcher only builds its request.
import { check } from "./index.js";
import { Client } from "./client.js";
import { Drive } from "./drive.js";
import { McproofError } from "./errors.js";
import { encode, type Expectation } from "./expectation.js";
import type { CheckOptions, Verdict } from "./options.js";
import type { WireTarget } from "./target.js";
import { originOf } from "./witness.js";

/** What `expect` gets. All of them ask the engine, so each has to be awaited. */
export interface McproofMatchers<R = unknown> {
  /** A call's payload, or any other value, meets an expectation in the language of the suites. */
  toMatchExpectation(expectation: Expectation): Promise<R>;
  /** A call gave `structuredContent`, which meets the expectation if there is one. */
  toHaveStructuredContent(expectation?: Expectation): Promise<R>;
  /** A call's text is this, or matches. */
  toHaveText(text: string | RegExp): Promise<R>;
  /** A call's result has `isError`, and its text is this, or matches. */
  toBeToolError(text?: string | RegExp): Promise<R>;
  /** The error of a refused request: a JSON-RPC error with this code, or one that meets the expectation. */
  toBeRpcError(error?: number | Expectation): Promise<R>;
  /** What a client's server promises is what the lock file has. */
  toMatchContract(lock: string, options?: { deny?: "breaking" | "any" }): Promise<R>;
  /** A client's session, or a whole server, breaks no rule. */
  toPassCheck(options?: CheckOptions): Promise<R>;
  /** A value is what the reviewed file has; `update` writes it. What came is put beside a file that differs. */
  toMatchSnapshotFile(file: string, options?: { redact?: string[]; update?: boolean }): Promise<R>;
}

interface Outcome {
  pass: boolean;
  message: () => string;
}

type Matchers = { [Name in keyof McproofMatchers]: (received: unknown, ...given: Parameters<McproofMatchers[Name]>) => Promise<Outcome> };

export const matchers: Matchers = {
  async toMatchExpectation(received, expectation) {
    const actual = isCall(received) ? { result: rawOf(received) } : { value: received ?? null };
    return outcome(await judge(received, actual, expectation), "to meet the expectation");
  },

  async toHaveStructuredContent(received, expectation = { $any: true }) {
    const result = rawOf(received);
    return outcome(await judge(received, { value: result }, { structuredContent: expectation }), "to have such structured content");
  },

  async toHaveText(received, text) {
    return outcome(await judge(received, { result: rawOf(received) }, { $text: text }), "to have this text");
  },

  async toBeToolError(received, text) {
    const result = rawOf(received);
    const refused = await judge(received, { value: result }, { isError: true });
    if (!refused.ok || text === undefined) {
      return outcome(refused, "to be a tool's error");
    }
    return outcome(await judge(received, { result }, { $text: text }), "to be a tool's error with this text");
  },

  async toBeRpcError(received, error = { code: { $type: "integer" } }) {
    if (!(received instanceof McproofError) || !received.error) {
      throw new TypeError("toBeRpcError needs the error of a failed request: `await expect(client.call(…)).rejects.toBeRpcError(…)`");
    }
    const expected = typeof error === "number" ? { code: error } : error;
    return outcome(await judge(received, { value: received.error }, expected), "to be this JSON-RPC error");
  },

  async toMatchContract(received, lock, options) {
    if (!(received instanceof Client)) {
      throw new TypeError("toMatchContract needs a client: `await expect(client).toMatchContract(\"mcproof.lock\")`");
    }
    return outcome(await received.diff(lock, options), `to differ from ${lock}`, "");
  },

  async toPassCheck(received, options) {
    const report = received instanceof Client ? await received.check(options) : await check(received as WireTarget, options);
    return outcome(report, "to break a rule", "");
  },

  async toMatchSnapshotFile(received, file, options = {}) {
    const value = isCall(received) ? rawOf(received) : (received ?? null);
    const { state, text } = await Drive.inside().request<{ state: string; text?: string }>("snapshot", { file, value, ...options });
    return outcome({ ok: state === "same" || state === "written", text: text ?? `${file} is new and was not reviewed` }, `to be what ${file} has`);
  },
};

function judge(received: unknown, actual: object, expectation: Expectation): Promise<Verdict> {
  const { engine = Drive.inside(), ...wire } = originOf(received) ?? {};
  return engine.request("expect", { ...actual, expectation: encode(expectation), ...wire });
}

function outcome(verdict: { ok: boolean; text?: string }, claim: string, not = "not "): Outcome {
  const text = verdict.ok ? `expected ${not}${claim}` : (verdict.text ?? "");
  return { pass: verdict.ok, message: () => text.replace(/^error: /, "").trimEnd() };
}

/** A call's answer, ours or an SDK's. */
function isCall(value: unknown): boolean {
  const result = (value as { result?: unknown } | null)?.result ?? value;
  return Array.isArray((result as { content?: unknown } | null)?.content);
}

function rawOf(received: unknown): unknown {
  if (!isCall(received)) {
    throw new TypeError("this matcher needs the response to a call: `await expect(await client.call(…))`");
  }
  const { result } = received as { result?: unknown };
  return result ?? received;
}
