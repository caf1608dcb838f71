// The filter language of traces, as in the crate `mcproof-trace`, whose table of cases this is tested against.
import { ERRORS, type Call } from "./calls";
import { write } from "./lossless";

export class FilterError extends Error {
  constructor(message: string, readonly column: number, readonly length: number, readonly hint?: string) {
    super(message);
  }
}

export interface About {
  server?: string;
  transport?: string;
  client?: string;
  test?: string;
}

export type Filter = (call: Call, about?: About) => boolean;

export const KEYS = [
  "method", "tool", "prompt", "uri", "target", "server", "transport", "client", "test", "id", "status", "kind", "dir", "session", "call",
  "code", "http", "duration", "at",
];
export const STATUSES = ["pending", "ok", "input-required", "tool-error", "rpc-error", "http-error", "canceled", "no-response"];
const KINDS = ["request", "notification", "http", "unmatched"];
const DIRECTIONS: Record<string, string> = { in: "from-server", out: "to-server", "from-server": "from-server", "to-server": "to-server" };
const DEEPEST = 50;

export function parse(text: string): Filter {
  const parser = new Parser([...text]);
  const filter = parser.any();
  if (parser.peek() !== undefined) throw new FilterError("`)` without `(`", parser.place, 1, "remove it, or quote the value");
  return filter;
}

const isSpace = (symbol: string | undefined) => symbol !== undefined && /\s/u.test(symbol);

interface Word {
  place: number;
  text: string;
  /** How much of it stands before the first quote. */
  bare: number;
  quoted: boolean;
}

class Parser {
  place = 0;
  private depth = 0;
  constructor(private symbols: string[]) {}

  any(): Filter {
    const choices = [this.all().filter];
    while (this.takeWord("OR")) {
      const place = this.place;
      const { filter, terms } = this.all();
      if (terms === 0) throw new FilterError("nothing follows `OR`", Math.max(0, place - 2), 2);
      choices.push(filter);
    }
    return choices.length === 1 ? choices[0]! : (call, about) => choices.some((choice) => choice(call, about));
  }

  all(): { filter: Filter; terms: number } {
    const conditions: Filter[] = [];
    for (;;) {
      this.skipSpace();
      const symbol = this.peek();
      if (symbol === undefined || symbol === ")") break;
      if (this.atWord("OR")) {
        if (conditions.length === 0 && this.depth === 0 && this.symbols.slice(0, this.place).every(isSpace))
          throw new FilterError("nothing stands before `OR`", this.place, 2);
        break;
      }
      if (this.atWord("AND")) this.place += 3;
      else conditions.push(this.one());
    }
    const filter: Filter = conditions.length === 1 ? conditions[0]! : (call, about) => conditions.every((condition) => condition(call, about));
    return { filter, terms: conditions.length };
  }

  private one(): Filter {
    const place = this.place;
    const symbol = this.peek();
    if (symbol === "-") {
      this.place++;
      const next = this.peek();
      if (next === undefined || next === " " || next === ")") throw new FilterError("nothing follows `-`", place, 1);
      if (next === "-") throw new FilterError("`-` twice", place, 2, "quote a text that begins with `-`");
      const inner = this.one();
      return (call, about) => !inner(call, about);
    }
    if (symbol === "(") {
      this.place++;
      if (++this.depth > DEEPEST) throw new FilterError(`more than ${DEEPEST} parentheses inside each other`, place, 1);
      const begin = this.place;
      const inner = this.any();
      if (this.peek() !== ")") throw new FilterError("`(` without `)`", place, 1);
      const empty = this.symbols.slice(begin, this.place).every(isSpace);
      this.place++;
      this.depth--;
      if (empty) throw new FilterError("nothing stands in the parentheses", place, this.place - place);
      return inner;
    }
    return term(this.word());
  }

  private word(): Word {
    const place = this.place;
    let text = "";
    let bare: number | undefined;
    for (;;) {
      const symbol = this.peek();
      if (symbol === undefined || isSpace(symbol) || symbol === "(" || symbol === ")") break;
      this.place++;
      if (symbol !== '"') {
        text += symbol;
        continue;
      }
      bare ??= text.length;
      const quote = this.place - 1;
      for (;;) {
        const quoted = this.symbols[this.place++];
        if (quoted === undefined) throw new FilterError("the quote is not closed", quote, 1);
        if (quoted === '"') break;
        if (quoted === "\\") {
          const escaped = this.symbols[this.place++];
          if (escaped === undefined) throw new FilterError("the quote is not closed", quote, 1);
          text += escaped;
        } else text += quoted;
      }
    }
    return { place, text, bare: bare ?? text.length, quoted: bare !== undefined };
  }

  peek(): string | undefined {
    return this.symbols[this.place];
  }

  private skipSpace() {
    while (isSpace(this.peek())) this.place++;
  }

  private atWord(word: string): boolean {
    const end = this.symbols[this.place + word.length];
    const ends = end === undefined || isSpace(end) || end === "(" || end === ")";
    return ends && this.symbols.slice(this.place, this.place + word.length).join("") === word;
  }

  private takeWord(word: string): boolean {
    this.skipSpace();
    const found = this.atWord(word);
    if (found) this.place += word.length;
    return found;
  }
}

function term({ place, text, bare, quoted }: Word): Filter {
  const length = Math.max(1, [...text].length);
  const colon = text.slice(0, bare).indexOf(":");
  if (colon < 0) return contains(text);
  const key = text.slice(0, colon);
  const value = text.slice(colon + 1);
  const at = place + [...key].length + 1;
  const wide = Math.max(1, [...value].length);
  if (value === "" && !quoted) throw new FilterError(`nothing follows \`${key}:\``, place, length, "write a value, such as `*`");
  const globbed = (get: (call: Call, about?: About) => string | undefined): Filter => {
    const matches = glob(value);
    return (call, about) => {
      const found = get(call, about);
      return found !== undefined && matches(found);
    };
  };
  switch (key) {
    case "method": return globbed((call) => call.method);
    case "tool": return globbed((call) => (call.method === "tools/call" ? call.target : undefined));
    case "prompt": return globbed((call) => (call.method === "prompts/get" ? call.target : undefined));
    case "uri": return globbed((call) => (call.method.startsWith("resources/") ? call.target : undefined));
    case "target": return globbed((call) => call.target);
    case "server": return globbed((_, about) => about?.server);
    case "transport": return globbed((_, about) => about?.transport);
    case "client": return globbed((call, about) => (call.app ? "app" : about?.client));
    case "test": return globbed((_, about) => about?.test);
    case "id": return globbed((call) => (call.id === undefined || call.id === null ? undefined : typeof call.id === "string" ? call.id : write(call.id)));
    case "text": return contains(value);
    case "status": {
      if (value === "error") return (call) => ERRORS.includes(call.status);
      if (!STATUSES.includes(value)) {
        const close = near(value, ["error", ...STATUSES]);
        const hint = /^-?\d+$/.test(value)
          ? "write http: for an HTTP status, code: for a JSON-RPC error"
          : close ? `did you mean \`${close}\`?` : `one of error, ${STATUSES.join(", ")}`;
        throw new FilterError(`unknown status \`${value}\``, at, wide, hint);
      }
      return (call) => call.status === value;
    }
    case "kind": {
      chosen(value, KINDS, "kind", at, wide);
      return (call) => call.kind === value;
    }
    case "dir": {
      chosen(value, Object.keys(DIRECTIONS), "direction", at, wide);
      return (call) => call.direction === DIRECTIONS[value];
    }
    case "session": {
      const wanted = whole(value, at, wide);
      return (call) => call.session === wanted;
    }
    case "call": {
      const wanted = whole(value, at, wide);
      return (call) => call.key === wanted;
    }
    case "code": {
      const holds = number(value, at, wide);
      return (call) => call.code !== undefined && holds(call.code);
    }
    case "http": {
      const holds = number(value, at, wide);
      return (call) => call.http?.status !== undefined && holds(call.http.status);
    }
    case "duration": {
      const holds = durations(value, "durations", at, wide);
      return (call) => call.end !== undefined && holds(call.end - call.start);
    }
    case "at": {
      const holds = durations(value, "times", at, wide);
      return (call) => holds(call.start);
    }
  }
  const close = near(key, [...KEYS, "text"]);
  const hint = close ? `did you mean \`${close}:\`?` : `for a text with a colon, write text:"${text}"`;
  throw new FilterError(`unknown key \`${key}\``, place, Math.max(1, [...key].length), hint);
}

function contains(text: string): Filter {
  const needle = text.toLowerCase();
  // A pattern looks through long texts without making a copy of each in lower case; beyond ASCII it would take other letters for the same.
  const pattern = /^[\x20-\x7e]*$/.test(needle) ? new RegExp(needle.replaceAll(/[\\^$.*+?()[\]{}|\/-]/g, "\\$&"), "i") : undefined;
  const has = (text: string | undefined) => text !== undefined && (pattern ? pattern.test(text) : text.toLowerCase().includes(needle));
  return (call) => has(call.method) || has(call.target) || has(call.message) || has(call.request) || has(call.response);
}

function chosen(value: string, choices: string[], what: string, at: number, wide: number) {
  if (choices.includes(value)) return;
  const close = near(value, choices);
  throw new FilterError(`unknown ${what} \`${value}\``, at, wide, close && `did you mean \`${close}\`?`);
}

function whole(value: string, at: number, wide: number): number {
  if (!/^\+?\d+$/.test(value)) throw new FilterError(`\`${value}\` is not a number`, at, wide);
  return Number(value);
}

function operator(value: string): [string | undefined, string] {
  for (const sign of [">=", "<=", ">", "<", "="]) if (value.startsWith(sign)) return [sign, value.slice(sign.length)];
  return [undefined, value];
}

function comparison(sign: string, wanted: number): (value: number) => boolean {
  switch (sign) {
    case ">=": return (value) => value >= wanted;
    case "<=": return (value) => value <= wanted;
    case ">": return (value) => value > wanted;
    case "<": return (value) => value < wanted;
    default: return (value) => value === wanted;
  }
}

function number(value: string, at: number, wide: number) {
  const [sign, digits] = operator(value);
  if (!/^[-+]?\d+$/.test(digits)) throw new FilterError(`\`${digits}\` is not a number`, at, wide);
  return comparison(sign ?? "=", Number(digits));
}

function durations(value: string, what: string, at: number, wide: number) {
  const [sign, rest] = operator(value);
  if (sign === undefined || sign === "=")
    throw new FilterError(`\`${value}\` does not say which ${what}`, at, wide, "begin with `>`, `>=`, `<` or `<=`");
  const digits = rest.replace(/[a-zA-Zµ]+$/u, "");
  const unit = { us: 1, µs: 1, ms: 1e3, s: 1e6, m: 6e7 }[rest.slice(digits.length)];
  if (unit === undefined) throw new FilterError(`\`${rest}\` has no unit`, at, wide, "write a unit: us, ms, s or m, as in `>500ms`");
  if (!/^(\d+\.?\d*|\.\d+)$/.test(digits)) throw new FilterError(`\`${rest}\` is not a duration`, at, wide, "as in `>500ms`");
  return comparison(sign, Number(digits) * unit);
}

/** A text in which `*` is any text; no more work than the length of both. */
function glob(pattern: string): (text: string) => boolean {
  const parts = pattern.split("*");
  const first = parts[0]!;
  if (parts.length === 1) return (text) => text === first;
  const last = parts[parts.length - 1]!;
  const middle = parts.slice(1, -1);
  return (text) => {
    if (!text.startsWith(first)) return false;
    let left = text.slice(first.length);
    for (const part of middle) {
      const place = left.indexOf(part);
      if (place < 0) return false;
      left = left.slice(place + part.length);
    }
    return left.endsWith(last);
  };
}

export function near(word: string, names: string[]): string | undefined {
  let best: [number, string] | undefined;
  for (const name of names) {
    const distance = damerau(word, name);
    if (distance <= Math.max(1, Math.floor(name.length / 3)) && (!best || distance < best[0])) best = [distance, name];
  }
  return best?.[1];
}

function damerau(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > 12) return 99;
  const rows = Array.from({ length: one.length + 1 }, (_, row) => [row, ...Array<number>(other.length).fill(0)]);
  for (let column = 0; column <= other.length; column++) rows[0]![column] = column;
  for (let row = 1; row <= one.length; row++)
    for (let column = 1; column <= other.length; column++) {
      const cost = one[row - 1] === other[column - 1] ? 0 : 1;
      let least = Math.min(rows[row - 1]![column]! + 1, rows[row]![column - 1]! + 1, rows[row - 1]![column - 1]! + cost);
      if (row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1])
        least = Math.min(least, rows[row - 2]![column - 2]! + 1);
      rows[row]![column] = least;
    }
  return rows[one.length]![other.length]!;
}
