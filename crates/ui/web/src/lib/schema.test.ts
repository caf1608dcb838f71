import { expect, test } from "vitest";
import { hasSecrets, withoutSecrets } from "./schema";
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
