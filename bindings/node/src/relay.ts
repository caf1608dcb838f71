// Carries messages between the engine and a server object of this process. Knows the SDKs' `Transport`, not MCP.

/** What the TypeScript SDKs, version 1 and 2, ask of a transport. */
export interface Transport {
  start(): Promise<void>;
  send(message: unknown, options?: unknown): Promise<void>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  // The two versions type the message differently; what is passed is what came over the wire.
  onmessage?: ((message: any, extra?: any) => void) | undefined;
  sessionId?: string | undefined;
}

/** A server object of an SDK: `McpServer` or `Server`. */
export interface Connectable {
  // `Transport` of either version.
  connect(transport: any): Promise<void>;
  close?(): Promise<void>;
}

/** Makes a server, or takes the transport itself, as version 2's `serveStdio(factory, { transport })` does. */
export type Serve = (transport: Transport) => unknown;

export interface Wire {
  received(message: unknown): void;
  closed(reason?: string): void;
}

export class Relay implements Transport {
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: unknown) => void) | undefined;
  sessionId?: string | undefined;
  readonly #wire: Wire;
  /** Not connected before the engine writes: what a server says of itself belongs to a session that the engine knows. */
  #server: Connectable | Serve | undefined;
  /** What the engine wrote before the server listened. */
  #early: unknown[] | undefined = [];
  #closed = false;

  constructor(server: Connectable | Serve, wire: Wire) {
    this.#server = server;
    this.#wire = wire;
  }

  async start(): Promise<void> {
    // A server installs its callbacks before it starts the transport.
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const message of early) {
      this.write(message);
    }
  }

  async send(message: unknown): Promise<void> {
    if (this.#closed) {
      throw new Error("the connection is closed");
    }
    this.#wire.received(message);
  }

  async close(): Promise<void> {
    this.#finish();
  }

  /** The engine wrote a message to the server. */
  write(message: unknown): void {
    if (this.#server) {
      void this.#connect(this.#server);
      this.#server = undefined;
    }
    if (this.#early) {
      this.#early.push(message);
      return;
    }
    try {
      this.onmessage?.(message);
    } catch (error) {
      this.onerror?.(error as Error);
    }
  }

  /** The engine wrote what is no JSON: a server object has no parser of its own, so it is notified of an error. */
  writeBroken(): void {
    this.onerror?.(new SyntaxError("the line is not JSON"));
  }

  /** The engine closed its side. */
  end(): void {
    this.#finish();
  }

  /** A failure to connect is the server's end, with the reason in the transcript. */
  async #connect(server: Connectable | Serve): Promise<void> {
    try {
      const made = typeof server === "function" ? await server(this) : server;
      if (isConnectable(made)) {
        await made.connect(this);
      }
    } catch (error) {
      this.#finish(error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  #finish(reason?: string): void {
    if (!this.#closed) {
      this.#closed = true;
      this.#wire.closed(reason);
      this.onclose?.();
    }
  }
}

export function isConnectable(value: unknown): value is Connectable {
  return typeof value === "object" && value !== null && "connect" in value && typeof value.connect === "function";
}
