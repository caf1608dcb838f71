// A server of one's own, started for a test and ended with it: one function per transport, one handle for all.
import { Client } from "./client.js";
import type { ClientOptions } from "./options.js";

export interface E2EHandle {
  client: Client;
  /** Where it listens; `stdio://` for one that does not. */
  baseUrl: string;
  teardown: () => Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A script for this Node.js, or a whole command. */
export type Script = string | string[];

export interface StartOptions extends ClientOptions {
  /** Where the endpoint is: `/sse` or `/mcp` by default. */
  path?: string;
  cwd?: string;
}

export async function startStdioServer(script: Script, env: Record<string, string> = {}, options: StartOptions = {}): Promise<E2EHandle> {
  const { path: _, cwd, ...more } = options;
  return handle(await Client.open({ command: commandOf(script), env, ...(cwd ? { cwd } : {}) }, more));
}

/** The server gets its port in the variable `PORT`; without one here it is a free port. */
export function startSseServer(script: Script, port?: number, env: Record<string, string> = {}, options: StartOptions = {}): Promise<E2EHandle> {
  return listening("sse", script, port, env, options);
}

/** The same for Streamable HTTP. */
export function startHttpServer(script: Script, port?: number, env: Record<string, string> = {}, options: StartOptions = {}): Promise<E2EHandle> {
  return listening("http", script, port, env, options);
}

async function listening(
  transport: "sse" | "http",
  script: Script,
  port: number | undefined,
  env: Record<string, string>,
  { path = transport === "sse" ? "/sse" : "/mcp", cwd, ...more }: StartOptions,
): Promise<E2EHandle> {
  const at = port ? String(port) : "${port}";
  const target = { command: commandOf(script), env: { PORT: at, ...env }, url: `http://127.0.0.1:${at}${path}`, transport };
  return handle(await Client.open({ ...target, ...(cwd ? { cwd } : {}) }, more));
}

function commandOf(script: Script): string[] {
  return typeof script === "string" ? [process.execPath, script] : script;
}

function handle(client: Client): E2EHandle {
  const teardown = async (): Promise<void> => {
    await client.close();
  };
  const baseUrl = client.url ? new URL(client.url).origin : "stdio://";
  return { client, baseUrl, teardown, [Symbol.asyncDispose]: teardown };
}
