import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Call } from "./calls";
import { FilterError, parse } from "./filter";

const call = (facts: Partial<Call>): Call => ({
  key: 1, session: 1, kind: "request", direction: "to-server", method: "tools/call", start: 0, status: "ok", frames: [], request: "{}", version: 0, ...facts,
});

test("conditions are joined, negated and grouped", () => {
  const search = call({ target: "search", end: 800_000 });
  const ping = call({ method: "ping", status: "rpc-error", code: -32601, end: 100 });
  const check = (text: string, expected: boolean[]) => expect([search, ping].map((one) => parse(text)(one)), text).toEqual(expected);
  check("", [true, true]);
  check("tool:search", [true, false]);
  check("tool:sea*", [true, false]);
  check("method:*/call OR status:error", [true, true]);
  check("-method:ping", [true, false]);
  check("-(method:ping OR tool:x)", [true, false]);
  check("duration:>500ms", [true, false]);
  check("duration:<1ms code:-32601", [false, true]);
  check('text:"SEARCH"', [true, false]);
});

test("mistakes have a place and a hint", () => {
  const check = (text: string, column: number, length: number, hint?: RegExp) => {
    try {
      parse(text);
    } catch (error) {
      const { column: at, length: wide, hint: said } = error as FilterError;
      expect([at, wide], text).toEqual([column, length]);
      if (hint) expect(said).toMatch(hint);
      return;
    }
    expect.fail(`${text} is taken`);
  };
  check("metod:ping", 0, 5, /`method:`/);
  check("status:eror", 7, 4);
  check("duration:500ms", 9, 5, />/);
  check("a OR", 2, 2);
  check("(a", 0, 1);
  check('"a', 0, 1);
});

// The table that the command line is tested against, too.
test("the table of the crate mcproof-trace holds here as well", () => {
  const table = JSON.parse(readFileSync(new URL("../../../../trace/src/filter_cases.json", import.meta.url), "utf8")) as {
    calls?: { call: Record<string, unknown>; session?: Record<string, string> }[]; matches?: { filter: string; calls: number[] }[]; errors?: { filter: string; column: number; length: number; message: string; hint?: string | null }[];
  };
  for (const { filter, column, length } of table.errors ?? []) {
    let found: FilterError | undefined;
    try {
      parse(filter);
    } catch (error) {
      found = error as FilterError;
    }
    expect([found?.column, found?.length], filter).toEqual([column, length]);
  }
});
