import { expect, test } from "vitest";
import { flaws, hasSecrets, withoutSecrets } from "./schema";
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
