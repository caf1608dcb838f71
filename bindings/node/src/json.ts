// Values on their way to the engine. JSON drops some (undefined, functions) and makes others `null` or `{}` (NaN, Map, a promise), all in
// silence, so that an assertion would assert less than it says. Knows the values of JavaScript, not what they are for.

/** What is taken beside JSON. */
export interface Taken {
  /** Members that are undefined, as in every API of JavaScript: they are left out. */
  undefinedMembers?: boolean;
  /** Regular expressions, which someone else writes in another form. */
  patterns?: boolean;
}

/** A value that JSON has no form for, and the keys that lead to it. */
interface Loss {
  path: (string | number)[];
  kind: string;
  hint?: string;
}

/** Deeper ones contain themselves. */
const DEPTH = 1000;

/** Throws where JSON would lose or change something of a value; `what` names the value, such as `the expectation`. */
export function assertJson(value: unknown, what: string, taken: Taken = {}): void {
  const loss = lossOf(value, taken, "", 0);
  if (loss) {
    const place = loss.path.length === 0 ? what : `\`${written(loss.path)}\` of ${what}`;
    throw new TypeError(`${place} is ${loss.kind}${loss.hint ? `: ${loss.hint}` : ", which JSON has no form for"}`);
  }
}

export function isPromise(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

export function isPattern(value: unknown): value is RegExp {
  return tagOf(value) === "RegExp";
}

/** Whether JSON calls its `toJSON`. */
export function hasForm(value: object): value is { toJSON(key: string): unknown } {
  return "toJSON" in value && typeof value.toJSON === "function";
}

function lossOf(value: unknown, taken: Taken, key: string, depth: number): Loss | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined;
    case "number":
      return Number.isFinite(value) ? undefined : { path: [], kind: String(value) };
    case "bigint":
      return { path: [], kind: "a BigInt", hint: "JSON has none; write it as a number or as a string" };
    case "object":
      return value === null ? undefined : lossOfObject(value, taken, key, depth);
    case "undefined":
      return { path: [], kind: "undefined" };
    default:
      return { path: [], kind: `a ${typeof value}` };
  }
}

function lossOfObject(value: object, taken: Taken, key: string, depth: number): Loss | undefined {
  if (depth > DEPTH) {
    return { path: [], kind: "inside of itself" };
  }
  if (Array.isArray(value)) {
    // By index: JSON makes holes `null`, too.
    for (let index = 0; index < value.length; index += 1) {
      const loss = lossOf(value[index], taken, String(index), depth + 1);
      if (loss) {
        return below(index, loss);
      }
    }
    return undefined;
  }
  const tag = tagOf(value);
  if (isPromise(value)) {
    return { path: [], kind: "a promise", hint: "await it" };
  }
  if (tag === "RegExp" && taken.patterns) {
    return undefined;
  }
  if ("asymmetricMatch" in value) {
    return { path: [], kind: "a matcher of the test runner", hint: 'write it in the language of the suites, such as `{ $type: "string" }`' };
  }
  if (tag !== "Error" && hasForm(value)) {
    const form = value.toJSON(key);
    return form === null || form === undefined ? { path: [], kind: `a ${tag} that is ${form} in JSON` } : lossOf(form, taken, key, depth + 1);
  }
  const names = Object.keys(value);
  if ((tag !== "Object" && tag !== "Module") || (names.length === 0 && !isPlain(value))) {
    const name = tag === "Object" ? (value.constructor?.name ?? "class") : tag;
    return { path: [], kind: tag === "Object" ? `an instance of ${name} without members of its own` : `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}` };
  }
  const symbol = Object.getOwnPropertySymbols(value).find((each) => Object.prototype.propertyIsEnumerable.call(value, each));
  if (symbol) {
    return { path: [], kind: `an object with the key ${String(symbol)}` };
  }
  for (const name of names) {
    const member = (value as Record<string, unknown>)[name];
    if (member === undefined && taken.undefinedMembers) {
      continue;
    }
    const loss = lossOf(member, taken, name, depth + 1);
    if (loss) {
      return below(name, loss);
    }
  }
  return undefined;
}

function below(key: string | number, loss: Loss): Loss {
  loss.path.unshift(key);
  return loss;
}

/** Of any realm: jest runs tests in one of their own. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function tagOf(value: unknown): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}

function written(path: (string | number)[]): string {
  const shown = path.slice(0, 12);
  const text = shown.map((key) => (typeof key === "number" ? `[${key}]` : /^[\w$-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`)).join("");
  return text.replace(/^\./, "") + (shown.length < path.length ? "…" : "");
}
