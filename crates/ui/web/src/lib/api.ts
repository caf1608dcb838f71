// The way to the program that serves this page. The token of its start comes in the fragment of the address, is taken out of it at once,
// and is kept for this tab only.
import { read, write } from "./lossless";
import { download } from "./text";
import type { JsonObject } from "./types";

export class ApiError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

let token = "";

export function takeToken() {
  const fragment = new URLSearchParams(location.hash.startsWith("#/") ? "" : location.hash.slice(1));
  const given = fragment.get("token");
  if (given) {
    sessionStorage.setItem("mcproof-token", given);
    const place = fragment.get("at");
    history.replaceState(null, "", location.pathname + location.search + (place ? `#${place}` : ""));
  }
  token = given ?? sessionStorage.getItem("mcproof-token") ?? "";
}

/** What tells this start of the program from others. */
export const startOf = () => token;

/** An address that leads to a place in the page, for a browser that does not have the token yet. */
export function addressOf(place: string): string {
  return `${location.origin}${location.pathname}#${new URLSearchParams({ token, at: place }).toString()}`;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  const response = await fetch(path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers }, cache: "no-store", credentials: "omit", redirect: "error" });
  if (response.ok) return response;
  const text = await response.text();
  let message = text || `HTTP ${response.status}`;
  try {
    message = String((JSON.parse(text) as JsonObject).message ?? message);
  } catch {
    // It was plain text.
  }
  throw new ApiError(response.status, message);
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const response = await send(`/api/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: write(body) });
  return read(await response.text()) as T;
}

export async function get<T>(path: string): Promise<T> {
  return read(await (await send(`/api/${path}`, {})).text()) as T;
}

/** A file, with what it is to be called. */
export async function save(path: string, name: string) {
  const blob = await (await send(`/api/${path}`, {})).blob();
  download(name, blob);
}

/** The lines of the stream, until it ends. */
export async function* stream(signal: AbortSignal): AsyncGenerator<JsonObject[]> {
  const response = await send("/api/stream", { signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  // A long line comes in many pieces, which are not looked at again until its end is there.
  let pieces: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (!value.includes("\n")) {
      pieces.push(value);
      continue;
    }
    const lines = (pieces.join("") + value).split("\n");
    pieces = [lines.pop()!];
    yield lines.filter((line) => line !== "").map((line) => (line.startsWith('{"type":"frames"') ? JSON.parse(line) : read(line)) as JsonObject);
  }
}
