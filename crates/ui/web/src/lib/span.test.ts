import { expect, test } from "vitest";
import { moved, type Span } from "./span";

const check = (span: Span | null, key: string, shift: boolean, expected: Span | null | undefined) => {
  const found = moved(span, key, shift);
  expect(found && found.map((place) => Math.round(place * 100) / 100), `${key} ${shift}`).toEqual(expected);
};

test("keys begin, move, widen and end a span", () => {
  check(null, "ArrowRight", false, [0, 0.2]);
  check(null, "ArrowLeft", false, [0.8, 1]);
  check([0, 0.2], "ArrowRight", false, [0.04, 0.24]);
  check([0, 0.2], "ArrowLeft", false, [0, 0.2]);
  check([0.5, 0.98], "ArrowRight", false, [0.52, 1]);
  check([0, 0.2], "ArrowRight", true, [0, 0.24]);
  check([0.1, 0.12], "ArrowLeft", true, [0.1, 0.12]);
  check([0.1, 0.3], "End", true, [0.1, 1]);
  check([0.1, 0.3], "End", false, [0.8, 1]);
  check([0.1, 0.3], "PageUp", false, [0.26, 0.46]);
  check([0.1, 0.3], "Escape", false, null);
  check(null, "a", false, undefined);
});
