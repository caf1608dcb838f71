// A server over HTTP that several sessions share.
import { Drive } from "./drive.js";
import { assertNames } from "./names.js";
import { command, type CommandTarget } from "./target.js";

export interface SpawnOptions extends CommandTarget {
  url: string;
  timeouts?: { connectMs?: number };
}

let count = 0;

/** Starts a server and resolves when it accepts connections; each `testClient` of it is a session of its own. */
export async function spawn(options: SpawnOptions): Promise<SpawnedServer> {
  const drive = Drive.shared();
  count += 1;
  const server = `server${count}`;
  const { timeouts } = options;
  assertNames("`timeouts` of a spawned server", timeouts, ["connectMs"]);
  const started = await drive.request<{ url: string; port: number; pid: number }>("spawn", {
    server,
    ...command(options, drive.environment(), ["timeouts"]),
    timeouts: timeouts && { connect_ms: timeouts.connectMs },
  });
  return new SpawnedServer(drive, server, started, options.transport ?? "auto");
}

export class SpawnedServer {
  /** Its name in the engine. */
  readonly spawned: string;
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly transport: "auto" | "http" | "sse";
  readonly #drive: Drive;

  /** @internal */
  constructor(drive: Drive, spawned: string, started: { url: string; port: number; pid: number }, transport: "auto" | "http" | "sse") {
    this.#drive = drive;
    this.spawned = spawned;
    this.url = started.url;
    this.port = started.port;
    this.pid = started.pid;
    this.transport = transport;
  }

  /** What it printed so far. */
  async transcript(): Promise<string> {
    const { text } = await this.#drive.request<{ text: string }>("transcript", { server: this.spawned, frames: false, text: true });
    return text;
  }

  /** Ends it, with its whole process group. */
  async stop(): Promise<{ exit?: { code?: number; signal?: string }; forced: boolean; left_behind: unknown[] }> {
    return this.#drive.request("stop", { server: this.spawned });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
