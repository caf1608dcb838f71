// Names of options, for JavaScript, where no compiler tells a misspelled one. Knows the types of the options, and nothing that they do.
import type { Answers, CallOptions, ClientOptions } from "./options.js";

/** Every name of a type: the compiler refuses a list with one too many or too few. */
type Names<T> = Record<keyof Required<T>, true>;

const TIMEOUTS: Names<NonNullable<ClientOptions["timeouts"]>> = { connectMs: true, requestMs: true, callbackMs: true };
const ANSWERS: Names<Answers> = { roots: true, elicitation: true, sampling: true };
const CALL: Names<CallOptions> = { timeoutMs: true, maxMs: true, onProgress: true, meta: true, signal: true };
const CLIENT: Names<ClientOptions> = {
  era: true,
  protocolVersion: true,
  timeouts: true,
  client: true,
  answers: true,
  laterAnswers: true,
  secrets: true,
  showSecrets: true,
  allowFaults: true,
  skipRules: true,
  trace: true,
};

/** Throws if an option has none of these names; `what` is what they are options of. */
export function assertNames(what: string, given: object | undefined, names: readonly string[]): void {
  if (given !== undefined && (typeof given !== "object" || given === null)) {
    throw new TypeError(`${what} has options by name, in an object, not as ${String(given)}`);
  }
  const unknown = Object.keys(given ?? {}).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`${what} has no option \`${unknown}\`; it has ${names.map((name) => `\`${name}\``).join(", ")}`);
  }
}

export function assertClientOptions(options: ClientOptions, more: readonly string[] = []): void {
  assertNames("a client", options, [...Object.keys(CLIENT), ...more]);
  assertNames("`timeouts` of a client", options.timeouts, Object.keys(TIMEOUTS));
  assertAnswers(options.answers);
}

export function assertAnswers(answers: Answers | undefined): void {
  assertNames("`answers` of a client", answers, Object.keys(ANSWERS));
}

const CALL_NAMES = Object.keys(CALL);

export function assertCallOptions(options: CallOptions): void {
  assertNames("a request", options, CALL_NAMES);
}
