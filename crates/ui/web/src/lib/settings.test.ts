import { expect, test } from "vitest";
import { lines, pairs, removed, type Pairs } from "./settings";

test("lines are read with and without a value", () => {
  expect(pairs("A=1\n\n B = x=y \nC=\nD", "=")).toEqual([["A", "1"], ["B", "x=y"], ["C", ""], ["D", ""]]);
  expect(pairs("X-Key: a:b\nX-None:", ":")).toEqual([["X-Key", "a:b"], ["X-None", ""]]);
});

test("names are shown once, and those that went are told", () => {
  const known: Pairs = [["A", ""], ["B", ""], ["A", ""]];
  expect(lines(known, "=")).toBe("A=\nB=");
  expect(lines([["X-Key", ""]], ":")).toBe("X-Key:");
  expect(removed(known, pairs("B=\nC=1", "="))).toEqual(["A"]);
  expect(removed(known, pairs(lines(known, "="), "="))).toEqual([]);
});
