// Regular expressions of servers, in a time that grows with the text and not with its powers. A server may send `^(a+)+$`, which the engine
// of the browser tries for hours. Knows expressions, not schemas. What it does not know, it says.

/** The expression uses what only a backtracking engine can match, or is too large. */
export class NotChecked extends Error {}

/** Steps that one value may cost. */
const MOST_STEPS = 3_000_000;
const MOST_INSTRUCTIONS = 20_000;
const LONGEST_SOURCE = 20_000;

let steps = 0;
let isLimited = false;

/** Counts what a validation does.
 *
 * @throws NotChecked if it is too much. */
export function spend(cost = 1) {
  steps += cost;
  if (isLimited && steps > MOST_STEPS) throw new NotChecked("it takes too long");
}

/** Runs something that spends steps, which are limited. */
export function limited<T>(work: () => T): T {
  if (isLimited) return work();
  [steps, isLimited] = [0, true];
  try {
    return work();
  } finally {
    isLimited = false;
  }
}

type Fits = (symbol: string) => boolean;
type Instruction =
  | { kind: "symbol"; fits: Fits }
  | { kind: "split"; to: number[] }
  | { kind: "begin" | "end" | "word" | "no-word" | "match" }
  | { kind: "ahead"; program: Instruction[]; wanted: boolean; known: Map<number, boolean> };

type Node =
  | { kind: "symbol"; fits: Fits }
  | { kind: "all"; parts: Node[] }
  | { kind: "any"; parts: Node[] }
  | { kind: "repeat"; node: Node; least: number; most: number }
  | { kind: "begin" | "end" | "word" | "no-word" }
  | { kind: "ahead"; node: Node; wanted: boolean };

/** One symbol, as the engine of the browser understands it: a class or an escape costs nothing there. */
function one(source: string): Fits {
  const known = new Map<string, boolean>();
  const expression = new RegExp(`^(?:${source})$`, "su");
  return (symbol) => {
    let fits = known.get(symbol);
    if (fits === undefined) known.set(symbol, (fits = expression.test(symbol)));
    return fits;
  };
}

/** Reads what the browser has found valid. */
class Reader {
  private at = 0;

  constructor(private readonly source: string) {}

  whole(): Node {
    const parts = [this.branch()];
    while (this.took("|")) parts.push(this.branch());
    return parts.length === 1 ? parts[0]! : { kind: "any", parts };
  }

  private took(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false;
    this.at += text.length;
    return true;
  }

  private branch(): Node {
    const parts: Node[] = [];
    while (this.at < this.source.length && !"|)".includes(this.source[this.at]!)) parts.push(this.repeated(this.atom()));
    return { kind: "all", parts };
  }

  private repeated(node: Node): Node {
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})/.exec(this.source.slice(this.at, this.at + 40));
    if (!found) return node;
    this.at += found[0].length;
    // Whether as few as possible are taken makes no difference to whether it matches.
    this.took("?");
    const [text, least, comma, most] = found;
    if (least === undefined) return { kind: "repeat", node, least: text === "+" ? 1 : 0, most: text === "?" ? 1 : Infinity };
    return { kind: "repeat", node, least: Number(least), most: comma === "" ? Number(least) : most === "" ? Infinity : Number(most) };
  }

  private atom(): Node {
    if (this.took("^")) return { kind: "begin" };
    if (this.took("$")) return { kind: "end" };
    if (this.took("(?=") || this.took("(?!")) {
      const wanted = this.source[this.at - 1] === "=";
      return { kind: "ahead", node: this.inside(), wanted };
    }
    if (this.took("(?:")) return this.inside();
    if (this.took("(")) {
      if (this.took("?")) {
        const name = /^<[^=!>][^>]*>/.exec(this.source.slice(this.at));
        if (!name) throw new NotChecked("it looks behind, or has modifiers");
        this.at += name[0].length;
      }
      return this.inside();
    }
    if (this.took(".")) return { kind: "symbol", fits: (symbol) => !/[\n\r\u2028\u2029]/.test(symbol) };
    const from = this.at;
    if (this.took("[")) {
      while (this.source[this.at] !== "]") this.at += this.source[this.at] === "\\" ? 2 : 1;
      this.at += 1;
    } else if (this.took("\\")) {
      if (this.took("b")) return { kind: "word" };
      if (this.took("B")) return { kind: "no-word" };
      const escape = /^(?:[1-9k]|u\{[^}]*\}|u[dD][89abAB]..\\u[dD][c-fC-F]..|u....|x..|c.|[pP]\{[^}]*\}|[^])/u.exec(this.source.slice(this.at))!;
      if (/^[1-9k]$/.test(escape[0])) throw new NotChecked("it refers to a group");
      this.at += escape[0].length;
    } else this.at += String.fromCodePoint(this.source.codePointAt(this.at)!).length;
    const text = this.source.slice(from, this.at);
    return { kind: "symbol", fits: /^[^\\[]$/u.test(text) ? (symbol) => symbol === text : one(text) };
  }

  private inside(): Node {
    const node = this.whole();
    this.at += 1;
    return node;
  }
}

let compiled = 0;

function compile(node: Node, program: Instruction[]) {
  // Also what is repeated and empty takes time.
  if (++compiled > 10 * MOST_INSTRUCTIONS || program.length > MOST_INSTRUCTIONS) throw new NotChecked("it is too large");
  switch (node.kind) {
    case "symbol": program.push({ kind: "symbol", fits: node.fits }); break;
    case "all": for (const part of node.parts) compile(part, program); break;
    case "any": {
      const split: Instruction = { kind: "split", to: [] };
      program.push(split);
      const ends: { kind: "split"; to: number[] }[] = [];
      for (const part of node.parts) {
        split.to.push(program.length);
        compile(part, program);
        const end = { kind: "split" as const, to: [] as number[] };
        ends.push(end);
        program.push(end);
      }
      for (const end of ends) end.to.push(program.length);
      break;
    }
    case "repeat": {
      for (let count = 0; count < node.least; count++) compile(node.node, program);
      const rest: { kind: "split"; to: number[] }[] = [];
      if (node.most === Infinity) {
        const at = program.length;
        const split = { kind: "split" as const, to: [at + 1] };
        program.push(split);
        compile(node.node, program);
        program.push({ kind: "split", to: [at] });
        rest.push(split);
      } else
        for (let count = node.least; count < node.most; count++) {
          const split = { kind: "split" as const, to: [program.length + 1] };
          program.push(split);
          compile(node.node, program);
          rest.push(split);
        }
      for (const split of rest) split.to.push(program.length);
      break;
    }
    case "ahead": {
      const inside: Instruction[] = [];
      compile(node.node, inside);
      inside.push({ kind: "match" });
      program.push({ kind: "ahead", program: inside, wanted: node.wanted, known: new Map() });
      break;
    }
    default: program.push({ kind: node.kind });
  }
  if (program.length > MOST_INSTRUCTIONS) throw new NotChecked("it is too large");
}

const isWord = (symbol: string | undefined) => symbol !== undefined && /^\w$/.test(symbol);

/** Whether the program matches from `from` on, or from any place after it. All its ways go on side by side, none twice. */
function matches(program: Instruction[], text: string[], from: number, anywhere: boolean): boolean {
  let now: number[] = [];
  for (let at = from; ; at++) {
    const seen = new Uint8Array(program.length);
    const next: number[] = [];
    const pending = anywhere || at === from ? [...now, 0] : now;
    while (pending.length > 0) {
      const place = pending.pop()!;
      if (seen[place]) continue;
      seen[place] = 1;
      spend();
      const instruction = program[place]!;
      let goesOn = false;
      switch (instruction.kind) {
        case "match": return true;
        case "split": pending.push(...instruction.to); break;
        case "symbol": if (at < text.length && instruction.fits(text[at]!)) next.push(place + 1); break;
        case "begin": goesOn = at === 0; break;
        case "end": goesOn = at === text.length; break;
        case "word": goesOn = isWord(text[at - 1]) !== isWord(text[at]); break;
        case "no-word": goesOn = isWord(text[at - 1]) === isWord(text[at]); break;
        case "ahead": {
          let found = instruction.known.get(at);
          if (found === undefined) instruction.known.set(at, (found = matches(instruction.program, text, at, false)));
          goesOn = found === instruction.wanted;
        }
      }
      if (goesOn) pending.push(place + 1);
    }
    now = next;
    if (at >= text.length || (now.length === 0 && !anywhere)) return false;
    spend(program.length / 64);
  }
}

function forget(program: Instruction[]) {
  for (const instruction of program)
    if (instruction.kind === "ahead") {
      instruction.known.clear();
      forget(instruction.program);
    }
}

const programs = new Map<string, Instruction[] | NotChecked>();

function programOf(source: string): Instruction[] {
  let known = programs.get(source);
  if (!known) {
    if (source.length > LONGEST_SOURCE) throw new NotChecked("it is too long");
    // Not valid: whoever asks gets the SyntaxError that the browser has for it.
    new RegExp(source, "u");
    const program: Instruction[] = [];
    compiled = 0;
    try {
      compile(new Reader(source).whole(), program);
      program.push({ kind: "match" });
      known = program;
    } catch (error) {
      if (!(error instanceof NotChecked)) throw error;
      known = error;
    }
    if (programs.size > 500) programs.clear();
    programs.set(source, known);
  }
  if (known instanceof NotChecked) throw known;
  return known;
}

/** Patterns that were not checked since this list was emptied. */
export const unchecked = new Set<string>();

/** Stands for `RegExp` in the validator of schemas. */
export class Pattern {
  constructor(private readonly source: string) {}

  /** Whether the text matches.
   *
   * @throws NotChecked if that cannot be told. */
  test(text: string): boolean {
    const program = programOf(this.source);
    try {
      return limited(() => matches(program, [...text], 0, true));
    } finally {
      forget(program);
    }
  }

  /** Whether the text matches, as far as is known: a pattern that cannot be checked is noted, and refuses nothing. */
  allows(text: string): boolean {
    try {
      return this.test(text);
    } catch (error) {
      if (!(error instanceof NotChecked)) throw error;
      unchecked.add(this.source);
      return true;
    }
  }
}
