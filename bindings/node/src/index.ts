// mcproof for JavaScript: tests MCP servers over the real wire, on the engine of the `mcproof` program.
import { checkParams, Client } from "./client.js";
import { Drive } from "./drive.js";
import { McproofError } from "./errors.js";
import type { CheckOptions, ClientOptions, Report } from "./options.js";
import { resolve, type Target, type WireTarget } from "./target.js";

export { binary } from "./binary.js";
export { Client } from "./client.js";
export * from "./errors.js";
export type { Expectation } from "./expectation.js";
export type { McproofMatchers } from "./matchers.js";
export type * from "./options.js";
export type { Connectable, Serve, Transport } from "./relay.js";
export * from "./servers.js";
export * from "./spawn.js";
export type { CommandTarget, ConfiguredTarget, Target, UrlTarget, WireTarget } from "./target.js";
export type * from "./types.js";

/**
 * Opens a session with a server: an SDK's server object in memory (or a function that makes one), a command, a URL, or
 * the name of a server in a configuration file. `await using client = await testClient(…)` closes it.
 */
export function testClient(target: Target, options?: ClientOptions): Promise<Client> {
  return Client.open(target, options);
}

/** Explores a server as `mcproof check` does, in sessions of its own. For a server in memory see `Client.check`. */
export async function check(target: WireTarget, options: CheckOptions = {}): Promise<Report> {
  const drive = Drive.shared();
  const resolved = resolve(target, drive.environment());
  if (!("wire" in resolved)) {
    throw new McproofError("a server object cannot be explored: judge a session with `client.check()`", { kind: "bad-input" });
  }
  return drive.request("check", { target: resolved.wire, ...checkParams(options) });
}

/** Ends the engine's process with all that it started. It ends by itself with this process; the next use starts another. */
export function shutdown(): Promise<void> {
  return Drive.shutdown();
}
