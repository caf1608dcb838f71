import { expect, test } from "vitest";
import { read } from "./lossless";
import { boundsOf, choiceTexts, flaws, hasSecrets, initial, initialOfBranch, withoutSecrets } from "./schema";
import type { Json, JsonObject } from "./types";

const secret = { type: "string", format: "password" };
test.each<[string, JsonObject, Json, Json]>([
  ["a password", { properties: { a: secret, b: { type: "string" } } }, { a: "x", b: "y" }, { b: "y" }],
  ["what is only written", { properties: { a: { writeOnly: true } } }, { a: { b: 1 } }, {}],
  ["a password behind a reference", { properties: { a: { $ref: "#/$defs/s" } }, $defs: { s: secret } }, { a: "x" }, {}],
  ["passwords in a list", { properties: { a: { type: "array", items: { properties: { p: secret } } } } }, { a: [{ p: "x", q: 1 }] }, { a: [{ q: 1 }] }],
  ["a password in one of two", { oneOf: [{ properties: { p: secret } }, { properties: { q: {} } }] }, { p: "x", q: 1 }, { q: 1 }],
  ["passwords by name", { additionalProperties: secret }, { p: "x" }, {}],
])("%s is not kept", (_, schema, value, kept) => {
  expect(hasSecrets(schema)).toBe(true);
  expect(withoutSecrets(value, schema, schema)).toEqual(kept);
});

test("flaws are those of the alternative that is meant", () => {
  const circle = { type: "object", properties: { kind: { const: "circle" }, r: { type: "number" } }, required: ["kind", "r"] };
  const rect = { type: "object", properties: { kind: { const: "rect" }, w: { type: "number" }, h: { type: "number" } }, required: ["kind", "w", "h"] };
  expect(flaws({ oneOf: [circle, rect] } as JsonObject, { kind: "circle" })).toEqual([{ at: "", message: "“r” is required" }]);
  expect(flaws({ properties: { shape: { anyOf: [circle, rect, { type: "null" }] } } } as JsonObject, { shape: { kind: "rect", w: 1 } })).toEqual([{ at: "/shape", message: "“h” is required" }]);
  // Where none is meant, all is said.
  expect(flaws({ oneOf: [circle, rect] } as JsonObject, { kind: "line" })!.length).toBeGreaterThan(2);
  expect(flaws({ oneOf: [circle, rect] } as JsonObject, { kind: "circle", r: 1 })).toEqual([]);
});

test.each<[string, JsonObject, Json, string[]]>([
  ["an exclusive minimum", { type: "number", exclusiveMinimum: 0 }, 0, ["Must be greater than 0"]],
  ["an exclusive maximum", { type: "number", exclusiveMaximum: 5 }, 5, ["Must be less than 5"]],
  ["a minimum", { type: "number", minimum: 1 }, 0, ["Must be at least 1"]],
  ["a maximum", { type: "number", maximum: 1 }, 2, ["Must be at most 1"]],
  ["a minimum of draft 4", { $schema: "http://json-schema.org/draft-04/schema#", minimum: 0, exclusiveMinimum: true }, 0, ["Must be greater than 0"]],
  ["a factor", { type: "number", multipleOf: 5 }, 7, ["Must be a multiple of 5"]],
  ["a fraction", { type: "integer" }, 1.5, ["Must be an integer"]],
  ["another type", { type: ["string", "null"] }, 1, ["Must be a string or null, and is a number"]],
  ["an enumeration of another type", { type: "string", minLength: 1, enum: ["a", "b"] }, 1, ['Must be one of "a", "b"']],
  ["a constant", { const: 7 }, 8, ["Must be 7"]],
  ["titled constants", { oneOf: [{ const: "a", title: "A" }, { const: "b", title: "B" }] }, "c", ['Must be one of "a", "b"']],
  ["a condition", { if: { type: "string" }, then: { minLength: 3 } }, "a", ["Must have at least 3 characters"]],
  ["all of", { allOf: [{ minLength: 1 }, { maxLength: 2 }] }, "abc", ["Must have at most 2 characters"]],
  ["a name too many", { additionalProperties: false }, { x: 1 }, ["“x” is not allowed"]],
  ["another name that is described", { additionalProperties: { type: "string" } }, { x: 1 }, ["Must be a string, and is a number"]],
  ["a name that does not fit", { propertyNames: { pattern: "^a" } }, { b: 1 }, ["“b” is not allowed as a name"]],
  ["none of the alternatives", { anyOf: [{ type: "string" }, { type: "null" }] }, 1, ["Fits none of the alternatives", "Must be a string, and is a number", "Must be null, and is a number"]],
  ["what is needed beside it", { dependentRequired: { a: ["b"] } }, { a: 1 }, ["“b” is required beside “a”"]],
])("what is wrong is said once, and plainly: %s", (_, schema, value, messages) => {
  expect(flaws(schema, value)!.map(({ message }) => message)).toEqual(messages);
});

test("many flaws take no long time", () => {
  const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`x${index}`, 1]));
  const began = performance.now();
  flaws({ additionalProperties: false }, many);
  expect(performance.now() - began).toBeLessThan(5000);
});

test("choices that look the same are told apart", () => {
  expect(choiceTexts(["1", 1, true, null, "true", "a"])).toEqual(['"1"', "1", "true", "null", '"true"', "a"]);
  expect(choiceTexts(["", "a", "a ", 2])).toEqual(['""', '"a"', '"a "', "2"]);
  expect(choiceTexts([1, "1", 2], ["one", "one", "two"])).toEqual(["one (1)", 'one ("1")', "two"]);
});

test("a form begins with the constants that are required, and with no others", () => {
  const schema = read('{"properties":{"a":{"const":7},"b":{"const":8},"c":{"properties":{"kind":{"const":"x"}},"required":["kind"]},"d":{"properties":{"kind":{"const":"x"},"n":{"default":1}},"required":["kind"]}},"required":["b"]}') as JsonObject;
  expect(initial(schema, schema)).toEqual({ b: 8, d: { kind: "x", n: 1 } });
  const circle = { properties: { kind: { const: "circle" }, r: { type: "number" } } } as JsonObject;
  expect(initialOfBranch(circle, circle)).toEqual({ kind: "circle" });
});

test("bounds stand beside the type", () => {
  expect(boundsOf({ minimum: 1, exclusiveMaximum: 5, multipleOf: 2 })).toEqual(["≥ 1", "< 5", "multiple of 2"]);
  expect(boundsOf({ minimum: 0, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false })).toEqual(["> 0", "≤ 9"]);
  expect(boundsOf({ exclusiveMinimum: 0 })).toEqual(["> 0"]);
});
