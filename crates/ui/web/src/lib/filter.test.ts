import { expect, test } from "vitest";
import cases from "../../../../trace/src/filter_cases.json";
import type { Call } from "./calls";
import { FilterError, parse, type About } from "./filter";

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
interface Table {
  sessions: ({ key: number } & About)[];
  calls: (Omit<Call, "start" | "end" | "version"> & { start_us: number; end_us?: number })[];
  matches: { filter: string; calls: number[] }[];
  errors: { filter: string; column: number; length: number; message: string; hint?: string | null }[];
}

const table = cases as unknown as Table;

test.each(table.matches)("$filter matches as in the crate mcproof-trace", ({ filter, calls }) => {
  const parsed = parse(filter);
  const matches = table.calls.filter(({ start_us, end_us, ...facts }) =>
    parsed(call({ ...facts, start: start_us, end: end_us }), table.sessions.find((session) => session.key === facts.session)));
  expect(matches.map(({ key }) => key)).toEqual(calls);
});

test.each(table.errors)("$filter is refused as in the crate mcproof-trace", ({ filter, column, length, message, hint }) => {
  let found: unknown;
  try {
    parse(filter);
  } catch (error) {
    found = error;
  }
  expect(found).toBeInstanceOf(FilterError);
  const mistake = found as FilterError;
  expect({ column: mistake.column, length: mistake.length, message: mistake.message, hint: mistake.hint ?? null }).toEqual({ column, length, message, hint: hint ?? null });
});
