import { expect, test } from "vitest";
import { write } from "./lossless";
import { NotChecked, Pattern } from "./pattern";
import { initial, judged, resolve } from "./schema";

const TEXTS = ["", "a", "aa", "ab", "abc", "aXb", "b", "1", "12", "2026-01-02", "a.b", "a\nb", "é", "😀", "😀😀", "foo bar", "foo", "barfoo", " ", "-", "]", "\\", "A1b", "zzz", "a@b.cd", "Aa1!aaaa", "/x/y", "aaab", "_", "x{2}"];
const PATTERNS = [
  "", "a", "^a", "a$", "^a$", "^a*$", "^(a|b)+$", "^(?:ab?|c){1,2}$", "^a{2}$", "^a{2,}$", "^a{0,1}b$", "^[a-z]+$", "^[^a-z]+$", "^\\d{4}-\\d{2}-\\d{2}$", "\\bfoo\\b", "\\Bfoo", "^.$", "^..$", "^\\u{1F600}$", "^\\ud83d\\ude00+$", "^\\p{L}+$", "^[\\p{L}\\d]+$",
  "^\\S+@\\S+\\.\\S+$", "^(?=.*[A-Z])(?=.*\\d).{3,}$", "^(?!a).+$", "^(?<year>\\d+)", "^[\\]\\\\-]$", "^(a|)$", "(^|/)x(/|$)", "^a+?b$", "^\\x61\\u0062", "^(|a)+$", "^(a*)*$", "a|^b|c$", "^[\\w.]+$", "^\\/", "^[^]+$", "^\\{?x\\{2\\}$", "$^", "^(?:a(?=b))b", "(?:)",
];

test.each(PATTERNS)("%s matches what it matches in the browser", (source) => {
  for (const text of TEXTS) expect([text, new Pattern(source).test(text)]).toEqual([text, new RegExp(source, "u").test(text)]);
});

test("patterns of a hostile server end", () => {
  const begun = performance.now();
  for (const source of ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*(.*)*x$", "^(?=(a+)+$)a", "^((a{1,30}){1,30})$"]) expect(new Pattern(source).test(`${"a".repeat(2000)}!`)).toBe(false);
  for (const source of ["((((a{1,99}){1,99}){1,99}){1,99})", "^(.{0,9000}.{0,9000})$", "(?:){999999999}", "((?:(?:){999}){999}){999}"]) expect(() => new Pattern(source).test("a".repeat(100_000))).toThrow(NotChecked);
  expect(performance.now() - begun).toBeLessThan(10_000);
});

test("what cannot be matched in a bounded time is said, and refuses nothing", () => {
  for (const source of ["(?<=a)b", "(a)\\1", "(?<x>a)\\k<x>"]) expect(() => new Pattern(source).test("x")).toThrow(NotChecked);
  const schema = { type: "object", properties: { a: { type: "string", pattern: "^(a)\\1$" }, b: { type: "string", pattern: "^(b+)+$" } } };
  expect(judged(schema, { a: "x", b: `${"b".repeat(60)}!` })).toEqual({ flaws: [{ at: "/b", message: "Does not match the pattern" }], unchecked: ["^(a)\\1$"] });
  expect(judged(schema, { a: "x", b: "b" })).toEqual({ flaws: [], unchecked: ["^(a)\\1$"] });
  expect(judged({ type: "object", patternProperties: { "(?<=a)b": false } }, { ab: 1 }).flaws).toBeUndefined();
  expect(judged({ type: "object", patternProperties: { "^(b+)+$": { type: "number" } } }, { bb: "" }).flaws).toHaveLength(1);
});

test("schemas that branch without end are not held against a value", () => {
  const links = { type: "string", format: "url" };
  expect(judged(links, `http://${"a".repeat(60)}!/ x`).flaws).toHaveLength(1);
  expect([judged(links, "https://example.com/a?b=c#d").flaws, judged(links, "example.com").flaws?.length, judged(links, "http://").flaws?.length]).toEqual([[], 1, 1]);
  const $defs: Record<string, object> = { last: { type: "string" } };
  for (let depth = 0; depth < 40; depth++) $defs[`d${depth}`] = { allOf: [{ $ref: `#/$defs/${depth === 39 ? "last" : `d${depth + 1}`}` }, { $ref: `#/$defs/${depth === 39 ? "last" : `d${depth + 1}`}` }] };
  const begun = performance.now();
  expect(judged({ $defs, $ref: "#/$defs/d0" } as never, 1)).toEqual({ flaws: undefined, unchecked: [] });
  expect(judged({ type: "array", uniqueItems: true }, Array.from({ length: 30_000 }, (_, at) => at)).flaws).toBeUndefined();
  const wide = { $defs: { d0: { allOf: Array(12).fill({ $ref: "#/$defs/d0" }), type: "object" } }, $ref: "#/$defs/d0" };
  expect(resolve(wide, wide).type).toBe("object");
  const names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
  const deep = { type: "object", required: names, properties: Object.fromEntries(names.map((name) => [name, { $ref: "#" }])) };
  expect(write(initial(deep, deep)).length).toBeLessThan(100_000);
  expect(performance.now() - begun).toBeLessThan(20_000);
});
