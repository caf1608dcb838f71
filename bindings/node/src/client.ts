// One session with a server: what tests call. Each method is one request to the engine.
import { callBack, toError } from "./callback.js";
import { Drive, type RequestOptions } from "./drive.js";
import { McproofError, type Diagnostic, type RpcError } from "./errors.js";
import { encode, type Expectation } from "./expectation.js";
import { assertJson } from "./json.js";
import { assertAnswers, assertCallOptions, assertClientOptions, assertNames } from "./names.js";
import type {
  Answer,
  Answers,
  Callback,
  CallOptions,
  CheckOptions,
  ClientOptions,
  Contract,
  Ended,
  Progress,
  Report,
  ToolAnswer,
  Transcript,
  Verdict,
} from "./options.js";
import { Relay } from "./relay.js";
import { isServed, resolve, type Target } from "./target.js";
import { closed, opened, remember, touch } from "./witness.js";
import type {
  CallToolResult,
  Prompt,
  Resource,
  ResourceContents,
  ResourceTemplate,
  ServerCapabilities,
  ServerInfo,
  Tool,
} from "./types.js";

type Params = Record<string, unknown>;

/** What a server that is quick to answer needs to say what else it has to say. */
const SETTLING_MS = 500;

/** That a request fails does not say that the server may end. */
const END_EXPECTED = "a test that expects the end of its server has to look at `client.ended`";

/** What succeeds without a response of the server. */
const SILENT = new Set(["answers", "check", "expect", "notify", "wait"]);

interface Opened {
  era: "legacy" | "modern";
  transport: string;
  protocol_version: string;
  server_info?: ServerInfo;
  capabilities?: ServerCapabilities;
  instructions?: string;
  result: Record<string, unknown>;
  url?: string;
  pid?: number;
}

interface RawAnswer {
  result: unknown;
  elapsed_ms: number;
  frame: number;
  http?: Answer["http"];
}

interface CallAnswer<Payload> extends RawAnswer {
  payload: Payload;
  text: string | null;
  is_error: boolean;
}

export class Client {
  readonly #drive: Drive;
  readonly #session: string;
  /** The way to a server object. */
  readonly #relay: Relay | undefined;
  readonly #opening: Promise<void>;
  readonly #handlers = new Map<string, Set<Callback>>();
  readonly #rawResult = ({ result, frame }: RawAnswer): CallToolResult => {
    this.#note(result, frame);
    return result as CallToolResult;
  };
  #opened: Opened | undefined;
  #callbacks: Answers = {};
  #closing: Promise<Ended> | undefined;
  #ended: string | undefined;
  #exit: Ended["exit"];
  readonly #allowsFaults: boolean;
  /** How many faults have been told. */
  #faultsTold = 0;
  #endTold = false;
  /** The last request got no response: the server is not asked what else it has to say. */
  #unanswered = false;
  /** Something was on the wire since the last judgment. */
  #talked = true;
  /** What was found at the end, for the hook that runs after the test. */
  #foundAtClose: Error | undefined;
  /** What a handler of the test threw, which nobody has been told yet. */
  #thrown: Error | undefined;
  readonly #threw = (error: unknown): void => {
    this.#thrown ??= toError(error);
  };
  readonly #failed = (error: McproofError): void => {
    this.#unanswered ||= error.kind === "unanswered" || error.kind === "canceled";
  };
  readonly #throwThrown = (): void => {
    const thrown = this.#takeThrown();
    if (thrown) {
      throw thrown;
    }
  };
  #lastFrame: number | undefined;

  /** Starts or finds the server, and shakes hands. */
  static async open(target: Target, options: ClientOptions = {}): Promise<Client> {
    const client = new Client(target, options);
    await client.#opening;
    return client;
  }

  private constructor(target: Target, options: ClientOptions) {
    assertClientOptions(options);
    this.#drive = isServed(target) ? Drive.inside() : Drive.shared();
    const resolved = resolve(target, this.#drive.environment());
    const trace = options.trace ?? Boolean(process.env["MCPROOF_TRACE"]);

    const session = this.#drive.newSession({
      notified: (method, params) => this.#notified(method, params),
      requested: async (method, params) => this.#requested(method, params),
    });
    this.#session = session;
    const served = "served" in resolved ? resolved.served : undefined;
    if (served) {
      this.#relay = new Relay(served, {
        received: this.#drive.receiver(session),
        closed: (reason) => this.#drive.notify("relay/closed", { session, reason }),
      });
    }

    this.#allowsFaults = options.allowFaults ?? false;
    const { timeouts, client } = options;
    touch(this);
    this.#opening = this.#drive
      .request<Opened>("open", {
        session,
        target: "wire" in resolved ? resolved.wire : { relay: "messages" },
        era: options.era ?? (typeof served === "object" ? "legacy" : undefined),
        protocol_version: options.protocolVersion,
        timeouts: timeouts && { connect_ms: timeouts.connectMs, request_ms: timeouts.requestMs, callback_ms: timeouts.callbackMs },
        client,
        answers: this.#policies(options.answers),
        later_answers: options.laterAnswers,
        push: trace ? ["notifications", "frames"] : undefined,
        secrets: options.secrets,
        show_secrets: options.showSecrets,
        skip_rules: options.skipRules,
      })
      .then((answer) => {
        this.#opened = answer;
        opened(this);
      });
  }

  /** The name of the session in the engine. */
  get session(): string {
    return this.#session;
  }

  get era(): "legacy" | "modern" {
    return this.#known.era;
  }

  /** `in-memory`, `stdio`, `http` or `sse`. */
  get transport(): string {
    return this.#known.transport;
  }

  get protocolVersion(): string {
    return this.#known.protocol_version;
  }

  get url(): string | undefined {
    return this.#known.url;
  }

  get pid(): number | undefined {
    return this.#known.pid;
  }

  /** Why the connection ended, unless this client closed it. A test that looks at it expects that. */
  get ended(): string | undefined {
    this.#endTold ||= this.#ended !== undefined;
    return this.#ended;
  }

  /** The last frame of the transcript that is known here. */
  get lastFrame(): number | undefined {
    return this.#lastFrame;
  }

  getServerVersion(): ServerInfo | undefined {
    return this.#known.server_info;
  }

  getServerCapabilities(): ServerCapabilities | undefined {
    return this.#known.capabilities;
  }

  getInstructions(): string | undefined {
    return this.#known.instructions;
  }

  /** The whole result of the handshake. */
  get handshake(): Record<string, unknown> {
    return this.#known.result;
  }

  /** Calls a tool. A result with `isError` is a result: `expect(…).toBeToolError()`. */
  // The payload is what the tool gave.
  call<Payload = any>(tool: string, args: object = {}, options?: CallOptions): Promise<ToolAnswer<Payload>> {
    return this.#ask("call", { tool, arguments: args }, options, (answer: CallAnswer<Payload>) => {
      const { payload, text, is_error: isError } = answer;
      return this.#noted({ ...this.#answer<CallToolResult>(answer), payload, text, isError }, answer);
    });
  }

  /** As the SDK's client has it: the raw result. */
  callTool(params: { name: string; arguments?: object; _meta?: Record<string, unknown> }, options?: CallOptions): Promise<CallToolResult> {
    const { name, arguments: args = {}, _meta: meta } = params;
    const request = { method: "tools/call", params: { name, arguments: args } };
    return this.#ask("request", request, meta ? { ...options, meta } : options, this.#rawResult);
  }

  /** All pages. */
  async listTools(options?: CallOptions): Promise<{ tools: Tool[] }> {
    return { tools: await this.#list("tools", options) };
  }

  async listResources(options?: CallOptions): Promise<{ resources: Resource[] }> {
    return { resources: await this.#list("resources", options) };
  }

  async listResourceTemplates(options?: CallOptions): Promise<{ resourceTemplates: ResourceTemplate[] }> {
    return { resourceTemplates: await this.#list("templates", options) };
  }

  async listPrompts(options?: CallOptions): Promise<{ prompts: Prompt[] }> {
    return { prompts: await this.#list("prompts", options) };
  }

  async readResource({ uri }: { uri: string }, options?: CallOptions): Promise<{ contents: ResourceContents[]; [member: string]: unknown }> {
    return this.#result("read", { uri }, options);
  }

  async getPrompt(params: { name: string; arguments?: Record<string, string> }, options?: CallOptions): Promise<{ messages: { role: string; content: unknown }[]; [member: string]: unknown }> {
    return this.#result("prompt", { name: params.name, arguments: params.arguments }, options);
  }

  async complete(params: { ref: object; argument: { name: string; value: string }; context?: object }, options?: CallOptions): Promise<{ completion: { values: string[]; total?: number; hasMore?: boolean } }> {
    return this.#result("complete", params, options);
  }

  async ping(options?: CallOptions): Promise<Record<string, unknown>> {
    return this.#result("ping", {}, options);
  }

  /** Any request. */
  request<Result = Record<string, unknown>>(request: { method: string; params?: object }, options?: CallOptions): Promise<Answer<Result>> {
    const { method, params } = request;
    return this.#ask("request", { method, params }, options, (answer: RawAnswer) => this.#noted(this.#answer<Result>(answer), answer));
  }

  /** Any notification; it is out once this resolves. */
  async notification(notification: { method: string; params?: object }): Promise<void> {
    await this.#ask("notify", { method: notification.method, params: notification.params });
  }

  /** Sends a message or bytes as they stand. An error of the server is returned, not thrown. */
  async raw(message: object | string | Uint8Array, { wait, ...options }: { wait?: boolean; timeoutMs?: number } = {}): Promise<Partial<Answer> & { error?: RpcError }> {
    let sent: Params;
    if (typeof message === "string") {
      sent = { bytes: message };
    } else if (message instanceof Uint8Array) {
      sent = { bytes: { base64: Buffer.from(message).toString("base64") } };
    } else {
      sent = { message };
    }
    const { error, ...answer } = await this.#ask<Partial<RawAnswer> & { error?: RpcError }>("raw", { ...sent, wait }, options);
    const given = answer.frame === undefined ? {} : this.#answer(answer as RawAnswer);
    return error ? { ...given, error } : given;
  }

  /**
   * Calls `handler` with the params of each notification of this method; returns what ends that. What it throws fails the call that waits
   * for its response, or else the next one, or the end of the session.
   */
  onNotification(method: string, handler: Callback): () => void {
    const handlers = this.#handlers.get(method) ?? new Set();
    this.#handlers.set(method, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** The next notification of this method, each given once; one that came before is not missed. */
  async waitForNotification(method: string, options: { timeoutMs?: number } = {}): Promise<{ method: string; params: Record<string, unknown>; frame: number }> {
    assertNames("a wait", options, ["timeoutMs"]);
    return this.#ask("wait", { method, ...(options.timeoutMs === undefined ? {} : { timeout_ms: options.timeoutMs }) });
  }

  /** Replaces the responses to requests of the server. */
  async setAnswers(answers: Answers): Promise<void> {
    assertAnswers(answers);
    await this.#ask("answers", { answers: this.#policies(answers) });
  }

  /** Holds a value against an expectation in the language of the suites, with the wire of this session in the difference. */
  async expect(value: unknown, expectation: Expectation): Promise<Verdict> {
    assertJson(value, "the value");
    return this.#ask("expect", { value, expectation: encode(expectation) });
  }

  /** The wire, as failures show it and as data. */
  async transcript(options: { since?: number; last?: number } = {}): Promise<Transcript> {
    return this.#drive.request("transcript", { session: this.#session, frames: true, text: true, ...options });
  }

  /** Judges what has been on the wire of this session. To have a server explored, see the function `check`. */
  async check(options: CheckOptions = {}): Promise<Report> {
    return this.#ask("check", checkParams(options));
  }

  /** What the server promises to this kind of client. */
  async contract(): Promise<Contract> {
    return this.#ask("contract", {});
  }

  async hash(): Promise<Contract["hashes"]> {
    return this.#ask("hash", {});
  }

  /** Compares with the contract in a lock file. */
  async diff(lock: string, options: { deny?: "breaking" | "any" } = {}): Promise<{ ok: boolean; diff: Record<string, unknown>; text: string }> {
    assertNames("a comparison", options, ["deny"]);
    return this.#ask("diff", { lock, deny: options.deny });
  }

  /**
   * Ends the session in good order, and the server if the session started it. Throws an error of kind `fault` if something was on the wire
   * that no conforming server sends, or if the server ended unasked; within a test of vitest or jest the plugin throws it when the test is
   * over, so that it hides no failure of the test.
   */
  close(): Promise<Ended> {
    if (this.#closing) {
      return this.#closing;
    }
    const isWatched = touch(this);
    const closing = this.#close();
    this.#closing = closing.then(({ ended }) => ended);
    return closing.then(({ ended, fault }) => {
      if (fault && !isWatched) {
        throw fault;
      }
      this.#foundAtClose = fault;
      return ended;
    });
  }

  async #close(): Promise<{ ended: Ended; fault: Error | undefined }> {
    try {
      // Who has ended has ended all sessions: nothing is left to close.
      if (this.#drive.ended) {
        return { ended: {}, fault: this.#takeThrown() };
      }
      await this.#settle();
      const ended = await this.#drive.request<Ended>("close", { session: this.#session });
      const fault = await this.#judge(ended.faults ?? []);
      return { ended, fault: this.#takeThrown() ?? fault };
    } finally {
      closed(this);
      this.#drive.forget(this.#session);
    }
  }

  /** What is wrong on the wire and has not been told yet, if this client does not allow it. Each is told once. */
  async newFault(): Promise<Error | undefined> {
    if (this.#closing) {
      await this.#closing.catch(() => undefined);
      const found = this.#foundAtClose;
      this.#foundAtClose = undefined;
      return found;
    }
    const fault = await this.#newFaultOnWire();
    return this.#takeThrown() ?? fault;
  }

  async #newFaultOnWire(): Promise<McproofError | undefined> {
    if (this.#allowsFaults || !this.#opened || this.#drive.ended) {
      return undefined;
    }
    await this.#settle();
    const transcript = this.#drive.request<{ faults: Diagnostic[] }>("transcript", { session: this.#session, frames: false, text: false });
    return transcript.then(({ faults }) => this.#judge(faults), () => undefined);
  }

  /** What a server writes right behind its response comes before its response to a ping. Nothing is asked where it is silent already. */
  async #settle(): Promise<void> {
    const asks = this.#talked && !this.#allowsFaults && !this.#unanswered && this.#ended === undefined && this.#opened?.transport === "stdio";
    this.#talked = false;
    if (asks) {
      await this.#drive.request("ping", { session: this.#session, timeout_ms: SETTLING_MS }).catch(() => undefined);
    }
  }

  async #judge(found: Diagnostic[]): Promise<McproofError | undefined> {
    const faults = found.slice(this.#faultsTold);
    this.#faultsTold = Math.max(this.#faultsTold, found.length);
    // A server at a URL may have been started by a command that ends in good order.
    const unasked = this.#exit && !this.#endTold && (this.#opened?.transport === "stdio" || this.#exit.code !== 0);
    if (unasked) {
      this.#endTold = true;
      const when = this.#unanswered ? "instead of sending a response" : "after its last response";
      faults.push({ code: "server-exited", severity: "error", message: `${this.#ended}, ${when}`, hint: END_EXPECTED });
    }
    const [first] = faults;
    if (this.#allowsFaults || !first) {
      return undefined;
    }
    const texts = await Promise.all(faults.map((fault) => this.#shown(fault)));
    return new McproofError(first.message, { kind: "fault", diagnostic: first, text: texts.join("\n") });
  }

  async #shown(fault: Diagnostic): Promise<string> {
    const evidence = ((fault["evidence"] as { frames?: { id: number }[] } | undefined)?.frames ?? []).map(({ id }) => id);
    const range = evidence.length > 0 ? { since: evidence[0] } : { last: 8 };
    const request = this.#drive.request<Transcript>("transcript", { session: this.#session, ...range });
    // The fault itself is what matters, where the wire cannot be had any more.
    const { text, frames } = await request.catch(() => ({ text: "", frames: [] }));
    let lines = text.trimEnd().split("\n").filter((line) => line !== "");
    if (evidence.length > 0 && lines.length === frames.length) {
      lines = lines.filter((_, place) => (frames[place]?.id ?? 0) <= (evidence.at(-1) ?? 0));
    }
    const wire = lines.map((line, place) => `  ${place === 0 ? "wire" : "    "}  ${line}`);
    return [`error: ${fault.message}`, ...wire, ...(fault.hint ? [`  hint  ${fault.hint}`] : [])].join("\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #known(): Opened {
    if (!this.#opened) {
      throw new McproofError("the session is not open");
    }
    return this.#opened;
  }

  /** `read` makes of the engine's answer what the caller is to get. */
  #ask<T = unknown>(method: string, params: Params, options: CallOptions = {}, read?: (answer: any) => T): Promise<T> {
    assertCallOptions(options);
    touch(this);
    this.#talked = true;
    if (!SILENT.has(method)) {
      this.#unanswered = false;
    }
    const request: Params = { session: this.#session, ...params };
    const { timeoutMs, maxMs, onProgress, meta, signal } = options;
    if (timeoutMs !== undefined) request["timeout_ms"] = timeoutMs;
    if (maxMs !== undefined) request["max_ms"] = maxMs;
    if (meta !== undefined) request["meta"] = meta;
    if (onProgress) request["progress"] = true;
    const more: RequestOptions = {
      signal,
      progress: onProgress && ((progress) => callBack(onProgress as Callback, progress as unknown as Progress, this.#threw)),
      read,
      answered: this.#throwThrown,
      failed: method === "wait" ? undefined : this.#failed,
    };
    return this.#drive.request<T>(method, request, more);
  }

  async #result<T>(method: string, params: Params, options?: CallOptions): Promise<T> {
    const answer = await this.#ask<RawAnswer>(method, params, options);
    return this.#noted(this.#answer<T>(answer), answer).result;
  }

  async #list<T>(what: string, options?: CallOptions): Promise<T[]> {
    const { items } = await this.#ask<{ items: T[] }>("list", { what }, options);
    return items;
  }

  #answer<Result>(answer: RawAnswer): Answer<Result> {
    const { result, elapsed_ms: elapsedMs, frame, http } = answer;
    return { result: result as Result, elapsedMs, frame, ...(http && { http }) } as Answer<Result>;
  }

  /** What a handler of the test threw; each is told once. */
  #takeThrown(): Error | undefined {
    const thrown = this.#thrown;
    this.#thrown = undefined;
    return thrown;
  }

  /** Notes which frame both the response and the raw result in it are. */
  #noted<T extends { result: unknown }>(given: T, { frame }: RawAnswer): T {
    this.#note(given, frame);
    this.#note(given.result, frame);
    if ("payload" in given) {
      this.#note(given.payload, frame);
    }
    return given;
  }

  #note(value: unknown, frame: number): void {
    this.#lastFrame = Math.max(this.#lastFrame ?? 0, frame);
    remember(value, { engine: this.#drive, session: this.#session, frame });
  }

  #policies(answers: Answers | undefined): Params | undefined {
    if (!answers) {
      return undefined;
    }
    this.#callbacks = { ...this.#callbacks, ...answers };
    const policies = Object.entries(answers).map(([what, answer]) => [what, typeof answer === "function" ? "callback" : answer]);
    return Object.fromEntries(policies) as Params;
  }

  async #requested(method: string, params: unknown): Promise<unknown> {
    const what = { "elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots" }[method];
    const answer = what && this.#callbacks[what as keyof Answers];
    if (typeof answer !== "function") {
      throw new Error(`no callback for ${method}`);
    }
    return answer(params);
  }

  #notified(method: string, params: Params): void {
    if (method === "relay/write" && "message" in params) {
      this.#relay?.write(params["message"]);
    } else if (method === "relay/write") {
      this.#relay?.writeBroken();
    } else if (method === "relay/end") {
      this.#relay?.end();
    } else if (method === "session/frame") {
      process.stderr.write(`${(params["text"] as string).trimEnd()}\n`);
    } else if (method === "session/ended") {
      this.#ended = params["reason"] as string;
      this.#exit = params["exit"] as Ended["exit"];
    } else if (method === "session/notification") {
      this.#lastFrame = Math.max(this.#lastFrame ?? 0, params["frame"] as number);
      for (const handler of this.#handlers.get(params["method"] as string) ?? []) {
        callBack(handler, params["params"], this.#threw);
      }
    }
  }
}

export function checkParams({ call, ...options }: CheckOptions): Params {
  return { ...options, ...(call === undefined ? {} : { call: Array.isArray(call) ? call.join(",") : call }) };
}
