import { expect, test } from "vitest";
import { tableOf } from "./table";
import type { Json } from "./types";

test.each<[string, Json, string[] | undefined]>([
  ["a list of objects", [{ a: 1, b: 2 }, { a: 3 }], ["a", "b"]],
  ["the only list of an object", { total: 2, rows: [{ a: 1 }, { a: 2 }] }, ["a"]],
  ["two lists", { one: [{ a: 1 }, { a: 2 }], other: [] }, undefined],
  ["one row", [{ a: 1 }], undefined],
  ["a list of texts", ["a", "b"], undefined],
  ["rows that are not alike", [{ a: 1 }, { b: 1 }, { c: 1 }], undefined],
  ["nothing", null, undefined],
])("%s", (_, value, columns) => expect(tableOf(value)?.columns).toEqual(columns));
