// Expectations as tests write them in JavaScript, and as the engine reads them. Matches nothing itself.

/**
 * A value in the language of the suites: objects are subsets, arrays exact, `$`-keys are matchers
 * (`{ id: { $regex: "^ORD-" }, items: { $len: { $gt: 0 } } }`). A regular expression stands for `$regex`.
 */
export type Expectation = unknown;

export function encode(expectation: Expectation, key?: string): unknown {
  if (expectation instanceof RegExp) {
    const flags = [...expectation.flags].filter((flag) => "ims".includes(flag)).join("");
    if (key === "$text") {
      return `/${expectation.source}/${flags}`;
    }
    const pattern = flags ? `(?${flags})${expectation.source}` : expectation.source;
    return key === "$regex" ? pattern : { $regex: pattern };
  }
  if (Array.isArray(expectation)) {
    return expectation.map((item) => encode(item));
  }
  if (typeof expectation === "object" && expectation !== null) {
    return Object.fromEntries(Object.entries(expectation).map(([name, item]) => [name, encode(item, name)]));
  }
  return expectation;
}
