import { expect, test } from "vitest";
import { Tracker } from "./calls";
import { laneOf } from "./lanes";
import type { FrameBody } from "./types";

test("streams and authorization have lanes of their own", () => {
  const tracker = new Tracker(1);
  let id = 0;
  const push = (body: FrameBody, direction: "to-server" | "from-server" = "to-server") => tracker.push({ id: id++, at_us: id, direction, body });
  let exchange = 0;
  const http = (method: string, url: string, body: string, type = "application/json") => {
    push({ kind: "http-request", exchange: ++exchange, method, url: `http://127.0.0.1:1${url}`, headers: [], body });
    push({ kind: "http-response", exchange, status: 200, headers: [["Content-Type", type]] }, "from-server");
    return laneOf(tracker.calls.at(-1)!);
  };
  expect(http("GET", "/mcp", "", "text/event-stream; charset=utf-8")).toBe("streams");
  expect(http("GET", "/.well-known/oauth-protected-resource/mcp", "")).toBe("authorization");
  expect(http("GET", "/issuer/.well-known/openid-configuration", "")).toBe("authorization");
  expect(http("POST", "/register", '{"client_name":"mcproof","redirect_uris":["http://127.0.0.1/callback"]}')).toBe("authorization");
  expect(http("POST", "/token", "grant_type=authorization_code&code=[redacted]")).toBe("authorization");
  expect(http("DELETE", "/mcp", "")).toBe("HTTP");
  // A response that streams belongs to its request.
  expect(http("POST", "/mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"token=1"}}', "text/event-stream")).toBe("requests");
  expect(http("POST", "/mcp", '{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen"}', "text/event-stream")).toBe("streams");
});
