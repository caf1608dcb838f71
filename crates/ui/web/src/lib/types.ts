// What the server of the page sends. The names are those of the Rust types.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export type Raw = string | { base64: string };

export interface Frame {
  id: number;
  at_us: number;
  direction: "to-server" | "from-server" | "local";
  body: FrameBody;
}

export type FrameBody =
  | { kind: "line"; bytes: Raw; unterminated?: boolean }
  | { kind: "stderr"; bytes: Raw }
  | { kind: "stdout"; bytes: Raw }
  | { kind: "http-request"; exchange: number; method: string; url: string; headers: [string, string][]; body: Raw }
  | { kind: "http-response"; exchange: number; status: number; headers: [string, string][] }
  | { kind: "http-body"; exchange: number; bytes: Raw }
  | { kind: "sse-event"; exchange: number; bytes: Raw; event: string | null; id: string | null; data: Raw | null }
  | { kind: "http-end"; exchange: number; error: string | null }
  | { kind: "spawned"; pid: number; command: string[] }
  | { kind: "exited"; code: number | null; signal: number | null }
  | { kind: "closed"; pipe: string }
  | { kind: "signalled"; signal: string }
  | { kind: "note"; text: string };

export interface Handshake {
  era: "legacy" | "modern";
  transport: string;
  protocolVersion: string;
  capabilities: JsonObject;
  serverInfo?: JsonObject;
  instructions?: string;
}

export interface Diagnostic {
  code: string;
  severity: "note" | "warning" | "error";
  message: string;
  actual?: string;
  evidence?: { frames: Frame[]; omitted: number; stderr: string[] };
  hint?: string;
}

export interface Spec {
  name: string;
  server: string | null;
  config: string | null;
  command: string[];
  url: string | null;
  env: [string, string][];
  headers: [string, string][];
  /** What the configuration file sets, and is left out. */
  withoutEnv: string[];
  withoutHeaders: string[];
  clientId: string | null;
  /** Empty for one that is set. */
  clientSecret: string | null;
  scope: string | null;
  cwd: string | null;
  roots: string[];
  transport: string | null;
  era: string | null;
  revision: string | null;
}

export type Status = "closed" | "opening" | "open" | "failed" | "ended" | "recorded";

/** What was done to get a token, step by step. */
export interface SignIn {
  session: number;
  /** The exchange that the server refused. */
  refused: number;
  operation: string;
  state: "waiting" | "running" | "page" | "authorized" | "failed";
  failure: string | null;
  /** The page that the user is to open. */
  page: string | null;
  steps: SignInStep[];
}

export interface SignInStep {
  kind: "resource-metadata" | "server-metadata" | "registration" | "consent" | "callback" | "assertion" | "token" | "renewal";
  state: "waiting" | "running" | "done" | "unneeded" | "failed";
  method?: string;
  url?: string;
  exchange?: number;
  about?: string;
}

export interface Connection {
  id: number;
  title: string;
  spec: Spec;
  /** What a name in a configuration file stood for when the server was started last; values of variables and headers are empty. */
  resolved?: Spec | null;
  status: Status;
  diagnostic: Diagnostic | null;
  /** How its questions are answered without the user: the text that was set, and what it says. */
  policy?: Policy;
  /** Whether the handshake of the open session offered roots. */
  declaresRoots?: boolean | null;
  /** The resources with an open stream of updates (modern era). */
  subscriptions?: string[];
  authorization?: SignIn | null;
  /** Tasks that are followed to their end, or were. */
  followed?: { session: number; task: string; following: boolean; problem: Diagnostic | null }[];
  sessions: { id: number; openedMs: number; handshake: Handshake | null }[];
}

/** In the words of `answers:` of a suite. */
export interface Policy {
  text: string;
  answers: { roots?: Json[]; elicitation?: Json; sampling?: Json };
}

export interface Ask {
  id: number;
  connection: number;
  session: number;
  method: string;
  params: JsonObject;
  askedMs: number;
  /** What the policy has for the form, and the required fields for which it has nothing. */
  unfinished?: { content: JsonObject; missing: string[] } | null;
}

export interface TestCase {
  id: number;
  suite: string;
  name: string;
  transport: string;
  line: number;
  tags: string[];
  state: string;
  durationMs: number | null;
  /** In which order the tests ended; 0 for one that has not. */
  ended: number;
}

export interface Overview {
  /** Of `mcproof test --ui`. */
  tests?: { running: boolean; runs: number; problem: string | null; cases: TestCase[] } | null;
  revision: number;
  version: string;
  connections: Connection[];
  asks: Ask[];
  known: { name: string; file: string }[];
}

export interface Outcome {
  session: number;
  result?: JsonObject;
  error?: { code: number; message: string; data?: Json };
  failure?: Diagnostic;
  /** What the call has become; its result comes later. */
  task?: string;
  canceled: boolean;
  requestFrame: number | null;
  frame: number | null;
  elapsedUs: number | null;
}

export interface Finding {
  severity: "note" | "warning" | "error";
  level: string;
  message: string;
  conversation: number;
  frames: number[];
  source: string;
  remedy: string;
  cause?: string;
  defect?: { sdk: { name: string; version: string }; fixed?: string; advice: string };
  accepted?: boolean;
}
