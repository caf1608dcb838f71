import { expect, test } from "vitest";
import { isObject } from "./calls";
import { beyond64, halfSurrogate, LongNumber, numberOf, own, plain, read, repeated, typedJson, typedNumber, unfinished, write } from "./lossless";
import { flaws, initial } from "./schema";
import type { Json, JsonObject } from "./types";

test.each([
  '{"id":9007199254740993}', '[-9007199254740993,18446744073709551616]', '0.1000000000000000055511151231257827', "1e400", "-1.5e-400", "123456789012345678901234567890",
  '{"text":"9007199254740993 \\" 9007199254740993","n":12345678901234567890}', '{"__proto__":{"a":9007199254740993},"constructor":1}',
])("%s is written as it was read", (text) => {
  expect(write(read(text))).toBe(text);
});

test("numbers that JavaScript keeps are numbers", () => {
  for (const [text, number] of [["9007199254740991", 9007199254740991], ["9007199254740992", 9007199254740992], ["1e+21", 1e21], ["1.5", 1.5], ["0.1", 0.1], ["100000000000000000000", 100000000000000000000], ["0", 0], ["0.30000000000000004", 0.30000000000000004]] as const) expect(read(text)).toBe(number);
  expect(numberOf("9007199254740993")).toBeInstanceOf(LongNumber);
  for (const text of ["1.0", "1.50", "1E2", "1e21", "-0", "-0.0", "0.0000001", "[-0]", '{"a":-0,"b":2.50}']) expect(write(read(text))).toBe(text);
  expect([numberOf("12"), numberOf("1."), numberOf("01"), numberOf("x")]).toEqual([12, undefined, undefined, undefined]);
});

test("a long number is no object, and JSON stays JSON", () => {
  expect(isObject(numberOf("9007199254740993"))).toBe(false);
  expect(write({ a: [numberOf("9007199254740993")!, {}], b: undefined, c: "x" }, 2)).toBe('{\n  "a": [\n    9007199254740993,\n    {}\n  ],\n  "c": "x"\n}');
  expect(() => read("{9007199254740993}")).toThrow(SyntaxError);
  expect(() => read("9007199254740993,")).toThrow(SyntaxError);
});

test("numbers beyond 64 bits are told", () => {
  expect(beyond64(read('{"a":[9007199254740993,18446744073709551615,-9223372036854775808],"b":1}'))).toEqual([]);
  expect(beyond64(read('{"a":[18446744073709551616],"b":{"c":-9223372036854775809},"d":0.1000000000000000055511151231257827}'))).toEqual(["18446744073709551616", "-9223372036854775809", "0.1000000000000000055511151231257827"]);
});

test("what is typed stays what it is, key by key", () => {
  for (const text of ["1.05", "-0.5", "1e10", "10.01", "6.02e23", "0.001", "100.0025", "-0", "1E-7", "05", ".5", "+1"]) {
    for (let end = 1; end <= text.length; end++) expect(String(typedNumber(text.slice(0, end)))).toBe(text.slice(0, end));
    const value = { list: [typedNumber(text)] };
    if (Number.isNaN(Number(text)) || /^(0\d|[.+])/.test(text)) expect(unfinished(value)).toEqual([{ at: "/list/0", text }]);
    else expect([write(value), unfinished(value), beyond64(value)]).toEqual([`{"list":[${text}]}`, [], []]);
  }
  expect(unfinished({ "a/b": typedNumber(""), c: typedNumber("1.") })).toEqual([{ at: "/a~1b", text: "" }, { at: "/c", text: "1." }]);
  expect(isObject(typedNumber("-"))).toBe(false);
});

test("names that stand twice in one object are found", () => {
  expect(repeated('{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}],"d":"\\"a\\": {","a":3,"\\u0062":1,"e":"]"}')).toEqual(["a", "b"]);
  expect(repeated('[1,"a",{"a":{},"b":[]}]')).toEqual([]);
});

test("what is typed as JSON is refused where a part of it would not be sent", () => {
  expect(typedJson('{"a":{"b":1},"b":2}')).toEqual({ value: { a: { b: 1 }, b: 2 } });
  expect(typedJson('{"i":1,"s":"x","s":"y"}')).toEqual({ wrong: "“s” stands more than once in one object, of which only one would be sent" });
  expect(typedJson("{")).toEqual({ wrong: "This is not valid JSON" });
});

test("half of a surrogate pair is found in texts and names", () => {
  expect(halfSurrogate(read('{"i":1,"s":["\\ud800"]}'))).toBe("\ud800");
  expect(halfSurrogate(read('{"\\udc00":9007199254740993}'))).toBe("\udc00");
  expect(halfSurrogate(read('{"s":"😀 \\ud83d\\ude00","n":9007199254740993,"z":null}'))).toBeUndefined();
});

test("a schema may have long numbers, too", () => {
  const schema = read('{"type":"object","properties":{"c":{"const":9007199254740993},"e":{"enum":[9007199254740993]},"m":{"type":"integer","minimum":9007199254740993}}}') as JsonObject;
  expect(flaws(schema, read('{"c":9007199254740993,"e":9007199254740993,"m":9007199254740995}'))).toEqual([]);
  expect(flaws(schema, read('{"m":1}'))).toHaveLength(1);
});

test("names that all objects have are names like others", () => {
  const value = read('{"__proto__":1,"constructor":"a"}') as JsonObject;
  expect([own(value, "__proto__"), own(value, "constructor"), own(value, "toString")]).toEqual([1, "a", undefined]);
  expect(Object.keys(plain(value) as JsonObject)).toEqual(["__proto__", "constructor"]);
  const schema = read('{"type":"object","properties":{"constructor":{"type":"string","default":"x"},"__proto__":{"type":"string","default":"y"},"toString":{"type":"integer"},"hasOwnProperty":{"type":"string"}},"required":["toString"]}') as JsonObject;
  expect(flaws(schema, {})?.map(({ message }) => message)).toEqual(["“toString” is required"]);
  expect(flaws(schema, { toString: 1 } as Json)).toEqual([]);
  expect(flaws(schema, { toString: numberOf("9007199254740993")! } as Json)).toEqual([]);
  expect(flaws(schema, { toString: 1, constructor: 2 } as unknown as Json)).toHaveLength(1);
  expect(flaws(schema, { toString: 1, hasOwnProperty: "x" } as unknown as Json)).toEqual([]);
  expect(write(initial(schema, schema))).toBe('{"constructor":"x","__proto__":"y"}');
});
