// The engines of this process: requests in, promises out.
// Knows docs/drive.md's envelope; knows no method but those that concern a session it has to pass on.
import { addon, binary } from "./binary.js";
import { AddonChannel, ProcessChannel, type Channel, type Reader } from "./channel.js";
import { fromDrive, McproofError, type RpcError } from "./errors.js";
import { assertJson } from "./json.js";

type Json = Record<string, unknown>;

/** Receives the events of one session. */
export interface Listener {
  /** Any of the notifications, by its name without `session/` and `relay/` left in. */
  notified(method: string, params: Json): void;
  /** The server asks. What is thrown is answered as an error. */
  requested(method: string, params: unknown): Promise<unknown>;
}

export interface RequestOptions {
  signal?: AbortSignal | undefined;
  /** Told what the server says about the progress of this request. Throws nothing. */
  progress?: ((progress: Json) => void) | undefined;
  /** Told of a failure before the caller is. */
  failed?: ((error: McproofError) => void) | undefined;
  /** Called once there is a result, before the caller gets it. What it throws fails the request. */
  answered?: (() => void) | undefined;
  /** What is made of the result, without one more promise for it. What it throws fails the request. */
  read?: ((result: any) => unknown) | undefined;
}

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
  progress: RequestOptions["progress"];
  read: RequestOptions["read"];
  /** Called once it is answered. */
  done: (() => void) | undefined;
}

const PROTOCOL = 1;

export class Drive {
  static #shared: Drive | undefined;
  static #inside: Drive | undefined;

  /** The one with a process of its own, which starts servers; a new one if the last has ended. */
  static shared(): Drive {
    if (!Drive.#shared || Drive.#shared.#ended) {
      const program = binary();
      Drive.#shared = new Drive(program, (reader) => new ProcessChannel(program, reader));
    }
    return Drive.#shared;
  }

  /** The one inside this process, for what needs no other; that with a process where none can be inside. */
  static inside(): Drive {
    if (Drive.#inside && !Drive.#inside.#ended) {
      return Drive.#inside;
    }
    const path = addon();
    if (path === undefined) {
      return Drive.shared();
    }
    Drive.#inside = new Drive(path, (reader) => new AddonChannel(path, reader));
    return Drive.#inside;
  }

  /** Ends them, with everything that they started. */
  static async shutdown(): Promise<void> {
    const drives = [Drive.#shared, Drive.#inside];
    Drive.#shared = undefined;
    Drive.#inside = undefined;
    await Promise.all(drives.map((drive) => drive && drive.#shutdown()));
  }

  readonly #channel: Channel;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners = new Map<string, Listener>();
  readonly #environment = { ...process.env };
  #last = 0;
  #sessions = 0;
  #ended = false;

  private constructor(name: string, open: (reader: Reader) => Channel) {
    this.#channel = open({
      read: (line) => this.#take(JSON.parse(line) as Json),
      ended: (why) => this.#end(why),
    });
    this.#channel.hold(false);
    const hello = { protocol: PROTOCOL, driver: "mcproof-node", width: process.stdout.columns || 120 };
    this.request("hello", hello).catch((error: McproofError) => {
      this.#end(`${name} does not speak protocol ${PROTOCOL} of mcproof drive: ${error.message}`);
      this.#channel.finish();
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

  /** An error is given the stack of the one who awaits it: that of a pipe would tell nothing. */
  async request<T>(method: string, params: Json, options?: RequestOptions): Promise<T> {
    try {
      const result = await this.#requested<T>(method, params, options);
      options?.answered?.();
      return result;
    } catch (error) {
      if (error instanceof McproofError) {
        const message = `${error.name}: ${error.message}`;
        Error.captureStackTrace(error, this.request);
        const [, ...frames] = (error.stack ?? "").slice(message.length).split("\n");
        error.stack = [message, ...frames].join("\n");
        options?.failed?.(error);
      }
      throw error;
    }
  }

  #requested<T>(method: string, params: Json, options: RequestOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        reject(new McproofError("mcproof drive has ended"));
        return;
      }
      // What has no form in JSON throws here, before anything waits for a response.
      const written = json(params, method);
      if (this.#pending.size === 0) {
        this.#channel.hold(true);
      }
      this.#last += 1;
      const id = this.#last;
      const pending: Pending = { resolve: resolve as (result: unknown) => void, reject, progress: options.progress, read: options.read, done: undefined };
      this.#pending.set(id, pending);
      this.#write(`"id":${id},"method":"${method}"`, written);
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
    this.#write(`"method":"${method}"`, json(params, method));
  }

  /** Reports messages of the server of a session. */
  receiver(session: string): (message: unknown) => void {
    const start = `{"jsonrpc":"2.0","method":"relay/received","params":{"session":${JSON.stringify(session)},"message":`;
    return (message) => this.#channel.send(`${start}${JSON.stringify(message)}}}`);
  }

  #write(head: string, params: string): void {
    this.#channel.send(`{"jsonrpc":"2.0",${head},"params":${params}}`);
  }

  #reply(outcome: { id: unknown; result: unknown } | { id: unknown; error: unknown }): void {
    this.#channel.send(JSON.stringify({ jsonrpc: "2.0", ...outcome }));
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
      this.#listeners.get(params["session"] as string)?.notified(method as string, params);
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
      this.#channel.hold(false);
    }
    if ("error" in message) {
      pending.reject(fromDrive(message["error"] as RpcError));
    } else {
      const result = message["result"];
      try {
        pending.resolve(pending.read ? pending.read(result) : result);
      } catch (error) {
        pending.reject(error as Error);
      }
    }
  }

  async #ask(id: unknown, params: Json): Promise<void> {
    const listener = this.#listeners.get(params["session"] as string);
    try {
      if (!listener) {
        throw new Error("no handler for requests of this session");
      }
      const result = await listener.requested(params["method"] as string, params["params"]);
      assertJson(result, `the response to ${String(params["method"])}`, { undefinedMembers: true });
      this.#reply({ id, result });
    } catch (error) {
      const { code, message, data } = error as Partial<RpcError>;
      this.#reply({ id, error: { code: typeof code === "number" ? code : -32603, message: message ?? String(error), data } });
    }
  }

  #end(why: string): void {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    const error = new McproofError(why);
    for (const pending of this.#pending.values()) {
      pending.done?.();
      pending.reject(error);
    }
    this.#pending.clear();
    for (const [session, listener] of this.#listeners) {
      listener.notified("session/ended", { session, reason: why });
    }
  }

  async #shutdown(): Promise<void> {
    if (!this.#ended) {
      await this.request("shutdown", {}).catch(() => undefined);
      this.#channel.finish();
    }
  }
}

/** Arguments and options leave out what is undefined; anything else that JSON would lose or change is refused. */
function json(params: Json, method: string): string {
  assertJson(params, `the request \`${method}\``, { undefinedMembers: true });
  return JSON.stringify(params);
}
