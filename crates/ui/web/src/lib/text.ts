// Texts for people. What a server sent may hide or turn text around it: such characters are shown by their code.
import type { Raw } from "./types";

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** With the characters that a reader would not see as `\u{…}`. Tabs and line feeds stay. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (unseen) => `\\u{${unseen.codePointAt(0)!.toString(16)}}`);
}

export function rawText(raw: Raw | null | undefined): string {
  if (raw == null) return "";
  if (typeof raw === "string") return raw;
  return new TextDecoder("utf-8", { fatal: false }).decode(bytesOf(raw));
}

export function bytesOf(raw: Raw): Uint8Array {
  if (typeof raw === "string") return new TextEncoder().encode(raw);
  return Uint8Array.from(atob(raw.base64), (char) => char.charCodeAt(0));
}

export function duration(micros: number | null | undefined): string {
  if (micros == null) return "";
  if (micros < 1000) return `${Math.max(0, Math.round(micros))} µs`;
  const millis = micros / 1000;
  if (millis < 10) return `${millis.toFixed(1)} ms`;
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = millis / 1000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A time since the session began. */
export function clock(micros: number): string {
  const seconds = micros / 1e6;
  if (seconds < 60) return `+${seconds.toFixed(3)}`;
  const minutes = Math.floor(seconds / 60);
  return `+${minutes}:${(seconds - minutes * 60).toFixed(2).padStart(5, "0")}`;
}

/** A time of day, or a day with one, as a field of the browser takes it: in its time zone. Empty if the text is none. */
export function localTime(text: string): string {
  // Fields write no seconds where there are none, and would begin anew with another text.
  const short = (time: string) => time.replace(/^(.*\d\d:\d\d):00$/, "$1");
  const wall = /^(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d(?::\d\d)?(?=$|[.Zz+-])/.exec(text)?.[0];
  if (wall !== undefined && (!wall.includes("T") || withOffset(wall) === text)) return short(wall);
  const at = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d/.test(text) ? new Date(text) : undefined;
  if (!at || Number.isNaN(at.getTime())) return "";
  const two = (number: number) => String(number).padStart(2, "0");
  return short(`${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`);
}

/** What such a field gives, with seconds and the offset of the browser's time zone, as RFC 3339 requires. */
export function withOffset(local: string, now = new Date()): string {
  const whole = /:\d\d:/.test(local) ? local : `${local}:00`;
  const east = -(local.includes("T") ? new Date(whole) : now).getTimezoneOffset();
  const two = (number: number) => String(Math.floor(number)).padStart(2, "0");
  return `${whole}${east < 0 ? "-" : "+"}${two(Math.abs(east) / 60)}:${two(Math.abs(east) % 60)}`;
}

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function download(name: string, content: string | Blob, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
