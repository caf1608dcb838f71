// Which lane of the timeline a call stands in.
import type { Call } from "./calls";

export const LANES = ["requests", "from server", "notifications", "streams", "HTTP", "authorization", "process", "apps", "tasks"] as const;
export type Lane = (typeof LANES)[number];

/** Metadata of a resource or of an authorization server (RFC 9728, RFC 8414, OpenID Connect Discovery). */
const METADATA = /\/\.well-known\/(oauth-|openid-)/;
/** The body of a request for a token, of a registration (RFC 7591), or of a revocation. */
const OF_CLIENT = /(^|&)(grant_type|client_id|token)=|"redirect_uris"\s*:/;

export function laneOf(call: Call): Lane {
  if (call.app) return "apps";
  if (call.method === "subscriptions/listen") return "streams";
  if (call.kind === "http") {
    if (METADATA.test(call.http?.url ?? "") || (call.method === "POST" && OF_CLIENT.test(call.request))) return "authorization";
    return call.stream ? "streams" : "HTTP";
  }
  if (call.kind === "notification") return "notifications";
  return call.direction === "to-server" ? "requests" : "from server";
}
