// JSON whose numbers stay as they are written. A number that JavaScript would change, such as an identifier beyond 2^53, is kept as its text.
import type { Json } from "./types";

/** A number that JavaScript would write otherwise: one of more digits than it keeps, or one such as `1.0` and `1e2`. */
export class LongNumber {
  constructor(readonly text: string) {}

  /** Whether it has the value of an ordinary number. */
  get isExact(): boolean {
    return isExact(this.text);
  }

  toString(): string {
    return this.text;
  }

  /** For arithmetic: rounded. */
  valueOf(): number {
    return Number(this.text);
  }

  /** For code that does not know of such numbers: rounded. */
  toJSON(): number {
    return Number(this.text);
  }
}

/** What is typed into a field for numbers and is none yet, such as `-` and `1.`: kept as it is, and never sent. */
export class Unfinished extends LongNumber {
  override get isExact(): boolean {
    return false;
  }
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;
/** What may be such a number: one of many digits, with an exponent, with a zero at its end, a very small one, or `-0`. */
const SUSPICIOUS = /(?:^|[[:,\s])-?(?:\d[\d.]{15}|\d[\d.]*[eE][-+\d]|\d+\.\d*0\b|0\.00000)|-0(?![\d.])/;
const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

/** Sign, digits and exponent, the same for all ways to write a number. */
function canonical(text: string): string {
  const [mantissa, exponent = "0"] = text.toLowerCase().split("e");
  const [whole, fraction = ""] = mantissa!.replace("-", "").split(".");
  const all = (whole! + fraction).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  return digits === "" ? "0" : `${text.startsWith("-") ? "-" : ""}${digits}e${Number(exponent) - fraction.length + (all.length - digits.length)}`;
}

function isExact(text: string): boolean {
  const number = Number(text);
  return Number.isFinite(number) && canonical(text) === canonical(String(number));
}

/** Whether JavaScript writes the number as it stands here. */
const isUsual = (text: string) => String(Number(text)) === text;

/** A number as typed: undefined if it is none. */
export function numberOf(text: string): Json | undefined {
  if (!NUMBER.test(text)) return undefined;
  return isUsual(text) ? Number(text) : (new LongNumber(text) as unknown as Json);
}

/** An ordinary number, for whoever calculates with it. */
export function asNumber(value: Json | undefined): number | undefined {
  return typeof value === "number" ? value : (value as unknown) instanceof LongNumber ? Number(value) : undefined;
}

/** What a field for numbers holds: a number as it is written, or what is not one yet. */
export function typedNumber(text: string): Json {
  return numberOf(text) ?? (new Unfinished(text) as unknown as Json);
}

/** The JSON pointers of what is no number yet. */
export function unfinished(value: Json | undefined, at = ""): { at: string; text: string }[] {
  if ((value as unknown) instanceof Unfinished) return [{ at, text: String(value) }];
  if (value === null || typeof value !== "object" || (value as unknown) instanceof LongNumber) return [];
  return Object.entries(value).flatMap(([name, one]) => unfinished(one, `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`));
}

/** Stands before such a number while it is a text; nobody else knows it. */
const MARK = `\ue000${Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("")} `;

/** Reads JSON.
 *
 * @throws SyntaxError if it is none. */
export function read(text: string): Json {
  const plainly = JSON.parse(text) as Json;
  if (!SUSPICIOUS.test(text)) return plainly;
  let any = false;
  const marked = text.replace(TOKENS, (token) => {
    if (token.startsWith('"') || isUsual(token)) return token;
    any = true;
    return `"${MARK}${token}"`;
  });
  if (!any) return plainly;
  return JSON.parse(marked, (_, value: Json) => (typeof value === "string" && value.startsWith(MARK) ? new LongNumber(value.slice(MARK.length)) : value) as Json) as Json;
}

function hasLong(value: unknown): boolean {
  if (value === null || typeof value !== "object") return false;
  if (value instanceof LongNumber) return true;
  return Array.isArray(value) ? value.some(hasLong) : Object.values(value).some(hasLong);
}

function unescaped(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text;
  }
}

/** Longer texts are not searched for names that stand twice. */
const LONGEST_SEARCHED = 2_000_000;

/** The names that stand more than once in one object of a JSON text. */
export function repeated(text: string): string[] {
  if (text.length > LONGEST_SEARCHED) return [];
  const found = new Set<string>();
  const open: (Set<string> | null)[] = [];
  // A name is a text before a colon; texts are skipped as a whole.
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (name !== undefined) {
      const names = open.at(-1);
      const plainly = name.includes("\\") ? unescaped(name) : name.slice(1, -1);
      if (names?.has(plainly)) found.add(plainly);
      names?.add(plainly);
    } else if (token === "{") open.push(new Set());
    else if (token === "[") open.push(null);
    else if (token === "}" || token === "]") open.pop();
  }
  return [...found];
}

export const NOT_JSON = "This is not valid JSON";

/** What a user has typed as JSON, or what is wrong with it. */
export function typedJson(text: string): { value: Json } | { wrong: string } {
  let value: Json;
  try {
    value = read(text);
  } catch {
    return { wrong: NOT_JSON };
  }
  const [name] = repeated(text);
  return name === undefined ? { value } : { wrong: `“${name}” stands more than once in one object, of which only one would be sent` };
}

/** The first text in it, or name, that has half of a pair of surrogates: no text that can be sent. */
export function halfSurrogate(value: Json | undefined): string | undefined {
  if (typeof value === "string") return /\p{Surrogate}/u.test(value) ? value : undefined;
  if (value === undefined || value === null || typeof value !== "object" || (value as unknown) instanceof LongNumber) return undefined;
  for (const [name, one] of Object.entries(value)) {
    const found = halfSurrogate(name) ?? halfSurrogate(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Writes JSON, with such numbers as they were read. */
export function write(value: unknown, indent = 0): string {
  if (!hasLong(value)) return JSON.stringify(value, null, indent);
  return written(value, indent, "");
}

function written(value: unknown, indent: number, before: string): string {
  if (value instanceof LongNumber) return value.text;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inside = before + " ".repeat(indent);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  const parts = Array.isArray(value)
    ? value.map((one) => written(one, indent, inside))
    : Object.entries(value).filter(([, one]) => one !== undefined).map(([name, one]) => `${JSON.stringify(name)}:${indent > 0 ? " " : ""}${written(one, indent, inside)}`);
  if (parts.length === 0) return begin! + end!;
  return indent === 0 ? begin! + parts.join(",") + end! : `${begin!}\n${parts.map((part) => inside + part).join(",\n")}\n${before}${end!}`;
}

/** The numbers in it that do not pass through mcproof as they are: it has integers of 64 bits. */
export function beyond64(value: Json | undefined): string[] {
  if ((value as unknown) instanceof LongNumber) {
    const { text } = value as unknown as LongNumber;
    if ((value as unknown) instanceof Unfinished || isExact(text)) return [];
    return /^-?\d+$/.test(text) && BigInt(text) >= -(2n ** 63n) && BigInt(text) < 2n ** 64n ? [] : [text];
  }
  if (value === null || typeof value !== "object") return [];
  return (Array.isArray(value) ? value : Object.values(value)).flatMap(beyond64);
}

/** A copy that has ordinary numbers, and no names but its own: for code that looks names up without asking whose they are. */
export function plain(value: Json): Json {
  if (value === null || typeof value !== "object") return value;
  if ((value as unknown) instanceof Unfinished) return (value as unknown as Unfinished).text;
  if ((value as unknown) instanceof LongNumber) return Number((value as unknown as LongNumber).text);
  if (Array.isArray(value)) return value.map(plain);
  const copy = Object.create(null) as { [key: string]: Json };
  for (const [name, one] of Object.entries(value)) copy[name] = plain(one);
  return copy;
}

/** What stands under this name in the object itself, and never what all objects have, such as `constructor`. */
export function own<V>(object: { [key: string]: V }, name: string): V | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}
