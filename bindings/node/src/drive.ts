// The process of `mcproof drive`, one for all tests of this process: lines in, lines out, promises in between.
// Knows docs/drive.md's envelope; knows no method but those that concern a session it has to pass on.
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import type { Socket } from "node:net";
import { binary } from "./binary.js";
import { fromDrive, McproofError, type RpcError } from "./errors.js";

type Json = Record<string, unknown>;

/** Who is told what `drive` says about one session. */
export interface Listener {
  /** Any of the notifications, by its name without `session/` and `relay/` left in. */
  told(method: string, params: Json): void;
  /** The server asks. What is thrown is answered as an error. */
  asked(method: string, params: unknown): Promise<unknown>;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Told what the server says about the progress of this request. */
  progress?: ((progress: Json) => void) | undefined;
}

interface Pending extends RequestOptions {
  resolve(result: unknown): void;
  reject(error: Error): void;
  /** Called once it is answered. */
  done?: () => void;
  /** Where the caller stands: the stack of an error that comes from a pipe would tell nothing. */
  caller: { stack?: string };
}

const PROTOCOL = 1;
/** As it was before a test came with timers of its own. */
const later = setImmediate;

export class Drive {
  static #shared: Drive | undefined;

  /** The one of this process; a new one if the last has ended. */
  static shared(): Drive {
    if (!Drive.#shared || Drive.#shared.#ended) {
      Drive.#shared = new Drive(binary());
    }
    return Drive.#shared;
  }

  /** Ends the one of this process, with everything that it started. */
  static async shutdown(): Promise<void> {
    const drive = Drive.#shared;
    Drive.#shared = undefined;
    if (drive && !drive.#ended) {
      await drive.request("shutdown", {}).catch(() => undefined);
    }
  }

  readonly #child: ChildProcessWithoutNullStreams;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Map<string, Listener>();
  readonly #environment = { ...process.env };
  #unwritten = "";
  #partial = "";
  #stderr = "";
  #last = 0;
  #sessions = 0;
  #ended = false;

  private constructor(program: string) {
    this.#child = spawn(program, ["drive"], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
    this.#child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      this.#stderr = (this.#stderr + chunk).slice(-4000);
    });
    // Who writes to a process that has just ended learns it from the end, not from the pipe.
    this.#child.stdin.on("error", () => undefined);
    this.#child.on("error", (error) => this.#end(`cannot start ${program}: ${error.message}`));
    this.#child.on("close", (code, signal) => this.#end(`mcproof drive ended with ${signal ?? `exit code ${code}`}`));
    this.#hold(false);
    const hello = { protocol: PROTOCOL, driver: "mcproof-node", width: process.stdout.columns || 120 };
    this.request("hello", hello).catch((error: McproofError) => {
      this.#end(`${program} does not speak protocol ${PROTOCOL} of mcproof drive: ${error.message}`);
      this.#child.stdin.end();
    });
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** A name that no session of this process had. */
  newSession(listener: Listener): string {
    this.#sessions += 1;
    const session = `s${this.#sessions}`;
    this.#listeners.set(session, listener);
    return session;
  }

  forget(session: string): void {
    this.#listeners.delete(session);
  }

  /** What has been set in the environment since this process started `drive`, which servers would otherwise not see. */
  environment(): Record<string, string> {
    const changed: Record<string, string> = {};
    for (const [name, value] of Object.entries(process.env)) {
      if (value !== undefined && this.#environment[name] !== value) {
        changed[name] = value;
      }
    }
    return changed;
  }

  request<T>(method: string, params: Json, options: RequestOptions = {}): Promise<T> {
    const caller: { stack?: string } = {};
    Error.captureStackTrace(caller, this.request);
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        reject(new McproofError("mcproof drive has ended"));
        return;
      }
      if (this.#pending.size === 0) {
        this.#hold(true);
      }
      this.#last += 1;
      const id = this.#last;
      const pending: Pending = { resolve: resolve as (result: unknown) => void, reject, caller, ...options };
      this.#pending.set(id, pending);
      this.#write({ jsonrpc: "2.0", id, method, params });
      const { signal } = options;
      if (signal?.aborted) {
        this.notify("cancel", { id, reason: String(signal.reason) });
      } else if (signal) {
        const cancel = (): void => this.notify("cancel", { id, reason: String(signal.reason) });
        signal.addEventListener("abort", cancel);
        pending.done = () => signal.removeEventListener("abort", cancel);
      }
    });
  }

  notify(method: string, params: Json): void {
    this.#write({ jsonrpc: "2.0", method, params });
  }

  /** Goes out with what else this turn of the event loop has to say: each write wakes the engine. */
  #write(message: Json): void {
    if (this.#unwritten === "") {
      later(() => {
        const lines = this.#unwritten;
        this.#unwritten = "";
        if (!this.#ended) {
          this.#child.stdin.write(lines);
        }
      });
    }
    this.#unwritten += `${JSON.stringify(message)}\n`;
  }

  #read(chunk: string): void {
    let start = 0;
    for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
      const line = this.#partial + chunk.slice(start, end);
      this.#partial = "";
      start = end + 1;
      this.#take(JSON.parse(line) as Json);
    }
    this.#partial += chunk.slice(start);
  }

  #take(message: Json): void {
    const { id, method } = message;
    const params = message["params"] as Json;
    if (method === undefined) {
      this.#answered(id as number, message);
    } else if (id !== undefined) {
      void this.#ask(id, params);
    } else if (method === "session/progress") {
      this.#pending.get(params["id"] as number)?.progress?.(params);
    } else {
      this.#listeners.get(params["session"] as string)?.told(method as string, params);
    }
  }

  #answered(id: number, message: Json): void {
    const pending = this.#pending.get(id);
    if (!pending) {
      return;
    }
    this.#pending.delete(id);
    pending.done?.();
    if (this.#pending.size === 0) {
      this.#hold(false);
    }
    if ("error" in message) {
      const error = fromDrive(message["error"] as RpcError);
      const [, ...frames] = (pending.caller.stack ?? "").split("\n");
      error.stack = [`${error.name}: ${error.message}`, ...frames].join("\n");
      pending.reject(error);
    } else {
      pending.resolve(message["result"]);
    }
  }

  async #ask(id: unknown, params: Json): Promise<void> {
    const listener = this.#listeners.get(params["session"] as string);
    try {
      if (!listener) {
        throw new Error("nobody answers for this session");
      }
      const result = await listener.asked(params["method"] as string, params["params"]);
      this.#write({ jsonrpc: "2.0", id, result });
    } catch (error) {
      const { code, message, data } = error as Partial<RpcError>;
      this.#write({ jsonrpc: "2.0", id, error: { code: typeof code === "number" ? code : -32603, message: message ?? String(error), data } });
    }
  }

  #end(why: string): void {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    const error = new McproofError(this.#stderr ? `${why}\n${this.#stderr}` : why);
    for (const pending of this.#pending.values()) {
      pending.done?.();
      pending.reject(error);
    }
    this.#pending.clear();
    for (const [session, listener] of this.#listeners) {
      listener.told("session/ended", { session, reason: why });
    }
  }

  /** Keeps this process alive while an answer is awaited, and only then. */
  #hold(alive: boolean): void {
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      alive ? (part as unknown as Socket).ref() : (part as unknown as Socket).unref();
    }
  }
}
