// Options and results of a client, as types.
import type { Diagnostic } from "./errors.js";
import type { CallToolResult, Frame } from "./types.js";

/** Responds to a request of the server; what it throws becomes the JSON-RPC error (`code`, `message` and `data` of it). */
// The params are what the server sent.
export type Callback = (params: any) => unknown;

/** Responses to requests of the server. A kind without one is rejected, and not declared as a capability. */
export interface Answers {
  roots?: string[] | Callback;
  /** Values (the schema's defaults fill in what they leave out), a word, or a function that gives the result. */
  elicitation?: Record<string, unknown> | "accept" | "decline" | "cancel" | Callback;
  /** A text, a whole result, `"reject"`, or a function that gives the result. */
  sampling?: string | Record<string, unknown> | Callback;
}

export interface ClientOptions {
  /** `auto` asks the server; a server object that has `connect` is taken to be of the legacy era. */
  era?: "auto" | "legacy" | "modern";
  protocolVersion?: string;
  timeouts?: { connectMs?: number; requestMs?: number; callbackMs?: number };
  client?: { name?: string; version?: string; capabilities?: Record<string, unknown> };
  answers?: Answers;
  /** Kinds that `setAnswers` sets later: declared at the handshake, rejected until then. */
  laterAnswers?: (keyof Answers)[];
  /** Texts that show in no response, transcript or failure, like the credentials in headers, URLs and `env`. */
  secrets?: string[];
  /** Responses and notifications as the server sent them, with secrets in them: for tests that compare or hand on one. */
  showSecrets?: boolean;
  /** No test fails for what no conforming server sends (noise on stdout, a second response), or for a server that ended unasked. */
  allowFaults?: boolean;
  /** Rules that the traffic is not judged by: ids, areas, or globs such as `progress-*`; `*` for all. */
  skipRules?: string[];
  /** Prints each frame to stderr as it is seen; so does the variable `MCPROOF_TRACE`. */
  trace?: boolean;
}

export interface CallOptions {
  timeoutMs?: number;
  /** How long progress of the server may extend the wait, in all. */
  maxMs?: number;
  /** What it throws fails the call. */
  onProgress?: (progress: Progress) => void;
  /** Sent as `_meta`. */
  meta?: Record<string, unknown>;
  signal?: AbortSignal;
}

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

/** A raw result, and where it is in the transcript. */
export interface Answer<Result = Record<string, unknown>> {
  result: Result;
  elapsedMs: number;
  frame: number;
  http: { status: number; headers: [string, string][] } | undefined;
}

/** The response to a call, with what tests look at. */
// The payload is what the tool gave.
export interface ToolAnswer<Payload = any> extends Answer<CallToolResult> {
  /** The structured content, else the one text block as JSON if it parses, else its text, else null. */
  payload: Payload;
  /** All text blocks, or null if there is none. */
  text: string | null;
  isError: boolean;
}

export interface Verdict {
  ok: boolean;
  differences?: { path: string; expected: unknown; actual: unknown }[];
  diagnostic?: Diagnostic;
  text?: string;
}

export interface CheckOptions {
  only?: string[];
  skip?: string[];
  strict?: boolean;
  /** Also judge what desktop hosts reject, and start the server once more as they do. */
  hosts?: boolean;
  browser?: boolean;
  /** Tools that may be called, besides those declared read-only. */
  call?: string | string[];
}

export interface Report {
  ok: boolean;
  text: string;
  findings: { rule: string; severity: string; message: string; remedy?: string; text: string }[];
  report: Record<string, unknown>;
}

export interface Contract {
  key: string;
  contract: Record<string, unknown>;
  hashes: { tools: string; full: string };
}

export interface Transcript {
  text: string;
  frames: Frame[];
  faults: Diagnostic[];
  dropped: number;
}

export interface Ended {
  exit?: { code?: number; signal?: string };
  forced?: boolean;
  left_behind?: unknown[];
  faults?: Diagnostic[];
}
