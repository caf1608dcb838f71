// Expectations as tests write them in JavaScript, and as the engine reads them. Matches nothing itself.
import { assertJson, hasForm, isPattern } from "./json.js";

/**
 * A value in the language of the suites: objects are subsets, arrays exact, `$`-keys are matchers
 * (`{ id: { $regex: "^ORD-" }, items: { $len: { $gt: 0 } } }`). A regular expression stands for `$regex`.
 * What JSON would lose (undefined, a function, a Map, NaN, a promise) is a `TypeError`.
 */
export type Expectation = unknown;

export function encode(expectation: Expectation): unknown {
  assertJson(expectation, "the expectation", { patterns: true });
  return encoded(expectation);
}

function encoded(expectation: Expectation, key?: string): unknown {
  if (isPattern(expectation)) {
    const flags = [...expectation.flags].filter((flag) => "ims".includes(flag)).join("");
    if (key === "$text") {
      return `/${expectation.source}/${flags}`;
    }
    const pattern = flags ? `(?${flags})${expectation.source}` : expectation.source;
    return key === "$regex" ? pattern : { $regex: pattern };
  }
  if (Array.isArray(expectation)) {
    return expectation.map((item) => encoded(item));
  }
  if (typeof expectation === "object" && expectation !== null) {
    if (hasForm(expectation)) {
      return encoded(expectation.toJSON(key ?? ""), key);
    }
    return Object.fromEntries(Object.entries(expectation).map(([name, item]) => [name, encoded(item, name)]));
  }
  return expectation;
}
