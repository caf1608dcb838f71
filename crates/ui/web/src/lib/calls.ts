// Calls, derived from frames as they come: requests with their responses, notifications, HTTP requests without a message. The same
// states as in the crate `mcproof-trace`.
import { asNumber, LongNumber, read, write } from "./lossless";
import { TaskBook } from "./tasks";
import { rawText } from "./text";
import type { Frame, Json, JsonObject } from "./types";

export type CallKind = "request" | "notification" | "http" | "unmatched";
export type CallStatus =
  | "pending" | "ok" | "input-required" | "tool-error" | "rpc-error" | "http-error" | "canceled" | "no-response";

export interface Call {
  key: number;
  session: number;
  kind: CallKind;
  direction: "to-server" | "from-server";
  method: string;
  target?: string;
  id?: Json;
  start: number;
  end?: number;
  status: CallStatus;
  code?: number;
  message?: string;
  http?: { exchange: number; method: string; url: string; status?: number };
  /** A response without a message of its own that is an event stream. */
  stream?: boolean;
  parent?: number;
  /** The newest of its `notifications/progress`. */
  progress?: Progress;
  /** What was answered by a policy that the user has set: the method, and the policy as a suite has it. */
  policies?: [method: string, policy: Json][];
  /** It passed between the page and an app, and not over the wire. */
  app?: boolean;
  /** The server refused `server/discover`, and `initialize` succeeded: it speaks the legacy era, and nothing failed. */
  fellBack?: boolean;
  frames: number[];
  request: string;
  response?: string;
  /** Changes when the call does. */
  version: number;
}

export interface Progress {
  done: number;
  total?: number;
  message?: string;
}

export const ERRORS: CallStatus[] = ["tool-error", "rpc-error", "http-error", "no-response"];

/** Whether something went wrong with it. */
export const isFailure = (call: Call): boolean => ERRORS.includes(call.status) && !call.fellBack;

const FAR = 200_000;
/** What mcproof notes of an answer that no user gave (`asks.rs`). */
const BY_POLICY = /^(\S+) is answered by policy: (.*)$/s;
/** Calls before a note that may be what it is about. */
const NEAR = 50;
/** Methods whose results tell of tasks. */
const TASKED = new Set(["tools/call", "tasks/get", "tasks/cancel", "tasks/list", "tasks/result"]);

/** The place of the first call whose key is not below this one. Calls stand in the order of their keys, and some may be forgotten. */
export function placeOf(calls: Call[], key: number): number {
  let [low, high] = [0, calls.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (calls[middle]!.key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first calls of a session (its handshake and lists) and those that wait for a response are kept, whatever is forgotten. */
const FIRST = 200;
const MOST_WAITING = 1000;

export class Tracker {
  calls: Call[] = [];
  private lastKey = 0;
  tasks = new TaskBook();
  private open = new Map<string, Call>();
  private exchanges = new Map<number, { calls: Call[]; method: string; url: string; status?: number }>();
  private progress = new Map<string, Call>();

  constructor(private session: number) {}

  push(frame: Frame) {
    const { body } = frame;
    switch (body.kind) {
      case "line":
        if (frame.direction !== "local") this.text(frame, rawText(body.bytes), frame.direction);
        break;
      case "http-request": {
        const exchange = { calls: [] as Call[], method: body.method, url: body.url };
        this.exchanges.set(body.exchange, exchange);
        const text = rawText(body.body);
        if (text === "" || !this.text(frame, text, "to-server", body.exchange)) {
          const call = this.begin(frame, { kind: "http", direction: "to-server", method: body.method, target: pathOf(body.url), request: text });
          call.http = { exchange: body.exchange, method: body.method, url: body.url };
          exchange.calls.push(call);
        }
        break;
      }
      case "http-response":
        for (const call of this.exchanges.get(body.exchange)?.calls ?? []) {
          this.touch(call, frame);
          if (call.http) call.http.status = body.status;
          if (call.kind === "http" && body.headers.some(([name, value]) => name.toLowerCase() === "content-type" && /^\s*text\/event-stream/i.test(value))) call.stream = true;
          if (call.kind === "http") call.status = body.status >= 400 ? "http-error" : "pending";
          if (call.kind === "notification" && body.status >= 400) call.status = "http-error";
        }
        break;
      case "http-body":
        if (!this.text(frame, rawText(body.bytes), "from-server", body.exchange))
          for (const call of this.exchanges.get(body.exchange)?.calls ?? []) {
            this.touch(call, frame);
            if (call.response == null) call.response = rawText(body.bytes);
          }
        break;
      case "sse-event":
        if (body.data != null && !this.text(frame, rawText(body.data), "from-server", body.exchange))
          for (const call of this.exchanges.get(body.exchange)?.calls ?? []) this.touch(call, frame);
        break;
      case "http-end":
        for (const call of this.exchanges.get(body.exchange)?.calls ?? []) {
          this.touch(call, frame);
          if (call.kind === "http") {
            call.end = frame.at_us;
            if (call.status === "pending") call.status = body.error ? "no-response" : "ok";
          } else if (call.kind === "request" && call.status === "pending" && ((call.http?.status ?? 200) >= 400 || body.error)) {
            this.finish(call, frame, body.error ? "no-response" : "http-error");
            call.message = body.error ?? `HTTP ${call.http?.status}`;
          }
        }
        this.exchanges.delete(body.exchange);
        break;
      case "note":
        this.note(frame, body.text);
        break;
      case "exited":
      case "closed":
        if (body.kind === "exited" || body.pipe === "stdout")
          for (const call of [...this.open.values()]) {
            if (call.direction !== "to-server" || call.app) continue;
            this.finish(call, frame, "no-response");
            call.message = body.kind === "exited" ? exitText(body) : "the server closed its stdout";
          }
        break;
    }
  }

  /** Takes a note about a question: a request that is open, or one in the result of a call (2026-07-28, basic/patterns/mrtr). */
  private note(frame: Frame, text: string) {
    const [, method, written] = BY_POLICY.exec(text) ?? [];
    if (method === undefined) return;
    const open = [...this.open.values()].find((call) => call.direction === "from-server" && call.method === method && !call.app && !call.policies);
    // Of a task, the questions are in its state.
    const asked = open ?? this.calls.slice(-NEAR).findLast((call) => call.status === "input-required" || (call.method === "tasks/get" && call.response?.includes('"inputRequests"')));
    if (!asked) return;
    this.touch(asked, frame);
    try {
      (asked.policies ??= []).push([method, read(written!)]);
    } catch {
      // It was cut, as a frame that is too long is.
    }
  }

  /** A message between the page and an app. */
  fromApp(message: JsonObject, direction: "to-server" | "from-server", at: number) {
    const text = write(message);
    const { method, id } = message;
    if (typeof method === "string") {
      const request = id !== undefined && id !== null;
      const call = this.begin({ at_us: at }, { kind: request ? "request" : "notification", direction, method, target: targetOf(method, isObject(message.params) ? message.params : {}), request: text, app: true });
      if (!request) [call.status, call.end] = ["ok", at];
      else {
        call.id = id;
        this.open.set(`app ${direction} ${write(id)}`, call);
      }
      return;
    }
    const key = `app ${direction === "to-server" ? "from-server" : "to-server"} ${write(id)}`;
    const call = this.open.get(key);
    if (!call) return;
    this.open.delete(key);
    call.version++;
    call.response = text;
    call.end = at;
    call.status = isObject(message.error) ? "rpc-error" : isObject(message.result) && message.result.isError === true ? "tool-error" : "ok";
    if (isObject(message.error)) {
      call.code = asNumber(message.error.code);
      call.message = typeof message.error.message === "string" ? message.error.message : undefined;
    }
  }

  /** Takes a message or a batch of them; false if the text is none. */
  private text(frame: Frame, text: string, direction: "to-server" | "from-server", exchange?: number): boolean {
    let parsed: Json;
    try {
      parsed = read(text);
    } catch {
      return false;
    }
    const messages = Array.isArray(parsed) ? parsed : [parsed];
    let any = false;
    for (const message of messages) {
      if (!isObject(message)) continue;
      any = this.message(frame, message, messages.length === 1 ? text : write(message), direction, exchange) || any;
    }
    return any;
  }

  private message(frame: Frame, message: JsonObject, text: string, direction: "to-server" | "from-server", exchange?: number): boolean {
    const { method, id } = message;
    if (typeof method === "string") {
      const params = isObject(message.params) ? message.params : {};
      const request = id !== undefined && id !== null;
      const call = this.begin(frame, { kind: request ? "request" : "notification", direction, method, target: targetOf(method, params), request: text });
      const carrier = exchange == null ? undefined : this.exchanges.get(exchange);
      if (carrier && direction === "to-server") {
        call.http = { exchange: exchange!, method: carrier.method, url: carrier.url };
        carrier.calls.push(call);
      }
      if (request) {
        call.id = id;
        this.open.set(`${direction} ${write(id)}`, call);
        const token = isObject(params._meta) ? params._meta.progressToken : undefined;
        if (token !== undefined) this.progress.set(write(token), call);
        if (direction === "from-server") call.parent = carrier?.calls[0]?.key ?? this.lastOpen()?.key;
      } else {
        call.status = "ok";
        call.end = frame.at_us;
        if (method === "notifications/progress") call.parent = this.progress.get(write(params.progressToken))?.key;
        else if (direction === "from-server") call.parent = carrier?.calls[0]?.key;
        if (method === "notifications/cancelled") {
          const canceled = this.open.get(`${direction} ${write(params.requestId)}`);
          if (canceled) this.finish(canceled, frame, "canceled");
        }
        if (direction === "from-server") this.tasks.notified(method, params, frame.at_us);
        const parent = call.parent ? this.find(call.parent) : undefined;
        if (parent) this.touch(parent, frame);
        if (parent && method === "notifications/progress") parent.progress = progressOf(params) ?? parent.progress;
      }
      return true;
    }
    if (!("result" in message) && !("error" in message)) return false;
    // What an HTTP server says of itself may have an `error` as well, such as that of OAuth.
    if (!("id" in message) && !("jsonrpc" in message)) return false;
    const other = direction === "to-server" ? "from-server" : "to-server";
    const key = `${other} ${write(id)}`;
    const call = this.open.get(key) ?? (id == null && exchange != null ? this.exchanges.get(exchange)?.calls.find((c) => c.status === "pending") : undefined);
    if (!call) {
      const unmatched = this.begin(frame, { kind: "unmatched", direction, method: "response", target: id === undefined ? undefined : write(id), request: text });
      unmatched.status = "ok";
      unmatched.end = frame.at_us;
      return true;
    }
    call.response = text;
    const { error, result } = message;
    let status: CallStatus = "ok";
    if (isObject(error)) {
      status = "rpc-error";
      call.code = asNumber(error.code);
      call.message = typeof error.message === "string" ? error.message : undefined;
    } else if (isObject(result)) {
      if (result.isError === true) {
        status = "tool-error";
        call.message = firstText(result);
      } else if (result.resultType === "input_required") status = "input-required";
    }
    this.finish(call, frame, status);
    // A call that became no task is not read again.
    if (call.direction === "to-server" && TASKED.has(call.method) && (call.method !== "tools/call" || (isObject(result) && (isObject(result.task) || result.resultType === "task")))) {
      const asked = read(call.request) as JsonObject;
      const params = isObject(asked.params) ? asked.params : {};
      if (isObject(error)) this.tasks.failed(call, error, params);
      else if (isObject(result)) this.tasks.result(call, result, params, frame.at_us);
    }
    if (call.method === "initialize" && status === "ok") this.fallBack();
    return true;
  }

  private fallBack() {
    for (const call of this.calls) {
      if (call.method !== "server/discover" || !ERRORS.includes(call.status)) continue;
      call.fellBack = true;
      call.version++;
    }
  }

  private begin(frame: { at_us: number; id?: number }, facts: Pick<Call, "kind" | "direction" | "method" | "target" | "request" | "app">): Call {
    const call: Call = { key: ++this.lastKey, session: this.session, start: frame.at_us, status: "pending", frames: frame.id === undefined ? [] : [frame.id], version: 0, ...facts };
    this.calls.push(call);
    return call;
  }

  private touch(call: Call, frame: Frame) {
    call.version++;
    if (call.frames.length < FAR && call.frames[call.frames.length - 1] !== frame.id) call.frames.push(frame.id);
  }

  private finish(call: Call, frame: Frame, status: CallStatus) {
    this.touch(call, frame);
    call.status = status;
    call.end = frame.at_us;
    if (call.id !== undefined) this.open.delete(`${call.direction} ${write(call.id)}`);
  }

  find(key: number): Call | undefined {
    const call = this.calls[placeOf(this.calls, key)];
    return call?.key === key ? call : undefined;
  }

  /** Forgets the calls that began with a frame up to this one. */
  forget(until: number) {
    let waiting = 0;
    const keep = new Set<Call>();
    for (let index = this.calls.length - 1; index >= 0; index--) {
      const call = this.calls[index]!;
      if (index < FIRST || call.frames.length === 0 || call.frames[0]! > until || (call.status === "pending" && waiting++ < MOST_WAITING)) keep.add(call);
    }
    this.calls = this.calls.filter((call) => keep.has(call));
    for (const [token, call] of this.progress) if (!keep.has(call)) this.progress.delete(token);
    for (const [id, call] of this.open) if (!keep.has(call)) this.open.delete(id);
  }

  /** The newest request to the server that waits for its response, with this method and target. */
  pending(method: string, target: string | undefined): Call | undefined {
    let found: Call | undefined;
    for (const call of this.open.values()) if (call.direction === "to-server" && !call.app && call.method === method && call.target === target) found = call;
    return found;
  }

  private lastOpen(): Call | undefined {
    let last: Call | undefined;
    for (const call of this.open.values()) if (call.direction === "to-server" && !call.app) last = call;
    return last;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof LongNumber);
}

export function exitText({ code, signal }: { code: number | null; signal: number | null }): string {
  return code != null ? `the server exited with code ${code}` : `the server was ended by signal ${signal}`;
}

export function targetOf(method: string, params: JsonObject): string | undefined {
  const text = (value: Json | undefined) => (typeof value === "string" ? value : undefined);
  if (method === "completion/complete" && isObject(params.ref)) return text(params.ref.name) ?? text(params.ref.uri);
  if (method === "notifications/message") return text(params.level);
  if (method === "notifications/progress")
    return params.total != null ? `${params.progress} of ${params.total}` : params.progress != null ? String(params.progress) : undefined;
  return text(params.name) ?? text(params.uri) ?? text(params.taskId) ?? text(params.level);
}

function progressOf({ progress, total, message }: JsonObject): Progress | undefined {
  const done = asNumber(progress);
  const all = asNumber(total);
  return done === undefined ? undefined : { done, ...(all !== undefined && all > 0 ? { total: all } : {}), ...(typeof message === "string" ? { message } : {}) };
}

export function firstText(result: JsonObject): string | undefined {
  const content = Array.isArray(result.content) ? result.content : [];
  const block = content.find((block) => isObject(block) && typeof block.text === "string");
  return isObject(block) ? String(block.text).slice(0, 400) : undefined;
}

function pathOf(url: string): string {
  try {
    const { pathname, search } = new URL(url);
    return pathname + search;
  } catch {
    return url;
  }
}
