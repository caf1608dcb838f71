// Matchers for any runner with `expect.extend`. The engine judges; each matcher only builds its request.
import { check } from "./index.js";
import { Client } from "./client.js";
import { Drive } from "./drive.js";
import { McproofError } from "./errors.js";
import { encode, type Expectation } from "./expectation.js";
import { assertJson, isPromise } from "./json.js";
import type { CheckOptions, Verdict } from "./options.js";
import type { WireTarget } from "./target.js";
import { originOf } from "./witness.js";

/** What the engine takes for a pattern and not for plain text, and what means something in one. */
const PATTERN = /^\/.+\/[imsx]*$/s;
const SPECIAL = /[\\.+*?()|[\]{}^$#&~/-]/g;

/** What `expect` gets. All of them ask the engine, so each has to be awaited. */
export interface McproofMatchers<R = unknown> {
  /** A call's payload, or any other value, meets an expectation in the language of the suites. A call that failed (`isError`) meets none. */
  toMatchExpectation(expectation: Expectation): Promise<R>;
  /** A call succeeded and gave `structuredContent`, which meets the expectation if there is one. */
  toHaveStructuredContent(expectation?: Expectation): Promise<R>;
  /** A call succeeded, and its text is this, or matches. */
  toHaveText(text: string | RegExp): Promise<R>;
  /** A call's result has `isError`, and its text contains this, or matches, as with `tool_error` in suites. */
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

/** What a runner tells a matcher: under `not`, that a call failed refutes nothing that is claimed about its payload or text. */
interface Context {
  readonly isNot?: boolean;
}

type Matchers = { [Name in keyof McproofMatchers]: (this: Context, received: unknown, ...given: Parameters<McproofMatchers[Name]>) => Promise<Outcome> };

const claims: Matchers = {
  async toMatchExpectation(received, expectation) {
    const actual = isCall(received) ? { result: rawOf(received), ...errorAllowed(received, this.isNot) } : { value: received };
    return outcome(await judge(received, actual, expectation), "to meet the expectation");
  },

  async toHaveStructuredContent(received, ...given) {
    const result = rawOf(received);
    const expectation = given.length === 0 ? { $any: true } : given[0];
    const judged = await judge(received, { value: result }, { structuredContent: expectation });
    if (judged.ok && !this.isNot && isToolError(result)) {
      // The engine says that the call failed.
      return outcome(await judge(received, { result }, { $any: true }), "to succeed");
    }
    return outcome(judged, "to have such structured content");
  },

  async toHaveText(received, text) {
    const result = rawOf(received);
    return outcome(await judge(received, { result, ...errorAllowed(received, this.isNot) }, { $text: text }), "to have this text");
  },

  async toBeToolError(received, ...given) {
    const result = rawOf(received);
    const refused = await judge(received, { value: result }, { isError: true });
    if (given.length === 0) {
      return outcome(refused, "to be a tool's error");
    }
    const [text] = given;
    // As `tool_error` in suites: a part of the text, or a pattern.
    const expected = typeof text === "string" && !PATTERN.test(text) ? `/${text.replaceAll(SPECIAL, "\\$&")}/` : text;
    const judged = await judge(received, { result, ...errorAllowed(received, true) }, { $text: expected });
    return outcome(refused.ok ? judged : refused, "to be a tool's error with this text");
  },

  async toBeRpcError(received, ...given) {
    if (!(received instanceof McproofError) || !received.error) {
      throw new TypeError("toBeRpcError needs the error of a failed request: `await expect(client.call(…)).rejects.toBeRpcError(…)`");
    }
    const error = given.length === 0 ? { code: { $type: "integer" } } : given[0];
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
    const value = isCall(received) ? rawOf(received) : received;
    assertActual(value);
    const { state, text } = await Drive.inside().request<{ state: string; text?: string }>("snapshot", { file, value, ...options });
    return outcome({ ok: state === "same" || state === "written", text: text ?? `${file} is new and was not reviewed` }, `to be what ${file} has`);
  },
};

/** Each of them refuses what was not awaited, also under `not`, where it would differ from everything. */
export const matchers = Object.fromEntries(
  Object.entries(claims).map(([name, claim]) => [
    name,
    async function (this: Context | undefined, received: unknown, ...given: unknown[]): Promise<Outcome> {
      for (const [what, value] of [["the value", received], ...given.map((each) => ["the argument", each])] as [string, unknown][]) {
        if (isPromise(value)) {
          const remedy = what === "the value" ? "await it (`await expect(await client.call(…))`), or use `.resolves` or `.rejects`" : "await it";
          throw new TypeError(`${what} of ${name} is a promise: ${remedy}`);
        }
      }
      return (claim as (this: Context, received: unknown, ...given: unknown[]) => Promise<Outcome>).call(this ?? {}, received, ...given);
    },
  ]),
) as unknown as Matchers;

/** The value that a claim is about: what JSON would lose of it could not be told from what is not there. */
function assertActual(value: unknown): void {
  // What another client was handed over in memory may have members that are undefined, which the wire leaves out.
  assertJson(value, "the value", { undefinedMembers: isCall(value) });
}

function judge(received: unknown, actual: { value: unknown } | { result: unknown; allow_error?: true }, expectation: Expectation): Promise<Verdict> {
  assertActual("value" in actual ? actual.value : actual.result);
  const { engine = Drive.inside(), ...wire } = originOf(received) ?? {};
  return engine.request("expect", { ...actual, expectation: encode(expectation), ...wire });
}

function outcome(verdict: { ok: boolean; text?: string }, claim: string, not = "not "): Outcome {
  const text = verdict.ok ? `expected ${not}${claim}` : (verdict.text ?? "");
  return { pass: verdict.ok, message: () => text.replace(/^error: /, "").trimEnd() };
}

/** What lets the engine look at the payload of a call that failed, where it did: otherwise it expects success, as in suites. */
function errorAllowed(received: unknown, allowed: boolean | undefined): { allow_error?: true } {
  return allowed && isToolError(rawOf(received)) ? { allow_error: true } : {};
}

function isToolError(result: unknown): boolean {
  return (result as { isError?: unknown } | null)?.isError === true;
}

/** A call's answer, ours or an SDK's. Ours may lack the content that a result has to have. */
function isCall(value: unknown): boolean {
  const answer = value as { result?: unknown; isError?: unknown } | null;
  const result = answer?.result ?? value;
  const isOurs = typeof answer?.isError === "boolean" && typeof answer.result === "object" && answer.result !== null && "payload" in answer;
  return isOurs || Array.isArray((result as { content?: unknown } | null)?.content);
}

function rawOf(received: unknown): unknown {
  if (!isCall(received)) {
    throw new TypeError("this matcher needs the response to a call: `await expect(await client.call(…))`");
  }
  const { result } = received as { result?: unknown };
  return result ?? received;
}
