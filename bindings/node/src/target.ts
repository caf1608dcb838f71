// The ways to name a server, and what they are in the protocol of `drive`. Starts nothing.
import { assertNames } from "./names.js";
import type { Connectable, Serve } from "./relay.js";
import { isConnectable } from "./relay.js";
import type { SpawnedServer } from "./spawn.js";

/** A command of its own, over stdio; with `url` one that listens there (`${port}` is a free port). */
export interface CommandTarget {
  command: string | string[];
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  /** A pattern whose first group is the port in a line that the server prints. */
  portFrom?: string | RegExp;
  transport?: "auto" | "http" | "sse";
}

export interface UrlTarget {
  url: string | URL;
  headers?: Record<string, string>;
  transport?: "auto" | "http" | "sse";
}

/** A server of a configuration file (`mcpServers`). */
export interface ConfiguredTarget {
  server: string;
  config?: string;
}

/** A server that runs or can be started: a URL, a command, or the name of a server in a configuration file. */
export type WireTarget = string | URL | string[] | CommandTarget | UrlTarget | ConfiguredTarget | SpawnedServer;

/** Besides, a server object of this process, or a function that makes one (it is given the transport). */
export type Target = WireTarget | Connectable | Serve;

const COMMAND: Record<keyof Required<CommandTarget>, true> = { command: true, args: true, env: true, cwd: true, url: true, portFrom: true, transport: true };

export type Resolved = { wire: Record<string, unknown> } | { served: Connectable | Serve };

/** Whether it is a server of this process. */
export function isServed(target: Target): target is Connectable | Serve {
  return typeof target === "function" || isConnectable(target);
}

export function resolve(target: Target, environment: Record<string, string>): Resolved {
  if (isServed(target)) {
    return { served: target };
  }
  if (target instanceof URL) {
    return { wire: { url: target.href } };
  }
  if (typeof target === "string") {
    return { wire: /^https?:\/\//.test(target) ? { url: target } : { server: target } };
  }
  if (Array.isArray(target)) {
    return { wire: { command: target, env: environment } };
  }
  if ("spawned" in target) {
    return { wire: { spawned: target.spawned, transport: target.transport } };
  }
  if ("command" in target) {
    return { wire: { ...command(target, environment), transport: target.transport } };
  }
  if ("url" in target) {
    return { wire: { ...target, url: String(target.url) } };
  }
  return { wire: { ...target } };
}

/** `more` are names of options that a command has where it is started. */
export function command(target: CommandTarget, environment: Record<string, string>, more: readonly string[] = []): Record<string, unknown> {
  assertNames("a command", target, [...Object.keys(COMMAND), ...more]);
  const first = typeof target.command === "string" ? [target.command] : target.command;
  return {
    command: [...first, ...(target.args ?? [])],
    env: { ...environment, ...target.env },
    cwd: target.cwd,
    url: target.url,
    port_from: target.portFrom instanceof RegExp ? target.portFrom.source : target.portFrom,
  };
}
