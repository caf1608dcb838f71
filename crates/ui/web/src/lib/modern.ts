// What a request of the modern era says of itself (2026-07-28): the level of the log messages that it wants, and what it listens to.
import { isObject } from "./calls";
import { read } from "./lossless";
import type { Json, JsonObject } from "./types";

const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** The parameters with the level, unless they say another one. */
export function withLevel(params: JsonObject | undefined, level: string): JsonObject {
  const meta = isObject(params?._meta) ? params._meta : {};
  return { ...params, _meta: { [LOG_LEVEL]: level, ...meta } };
}

/** The level that a request says. */
export function levelIn(message: Json): string | undefined {
  const params = isObject(message) && isObject(message.params) ? message.params : {};
  const level = isObject(params._meta) ? params._meta[LOG_LEVEL] : undefined;
  return typeof level === "string" ? level : undefined;
}

/** Whether a `subscriptions/listen` asks for the updates of a resource. */
export function listensTo(request: string, uri: string): boolean {
  const message = read(request);
  const params = isObject(message) && isObject(message.params) ? message.params : {};
  const asked = isObject(params.notifications) ? params.notifications.resourceSubscriptions : undefined;
  return Array.isArray(asked) && asked.includes(uri);
}
