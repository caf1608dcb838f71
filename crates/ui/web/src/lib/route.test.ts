import { expect, test, vi } from "vitest";

// The page asks its document and the system for colors as it begins.
vi.hoisted(() => {
  Object.assign(globalThis, {
    document: { getElementById: () => null, documentElement: { dataset: {} } },
    matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
  });
});
const { placeOf, placeText } = await import("./route");

test.each(["/1/tools/echo", "/-/connect", "/2/resources/file%3A%2F%2F%2Fa%3Fb", "/1/overview?call=3.14", "/1/tools/a%2Fb?call=-101.2", "/1/tools/%E2%9C%93", "/1/answers", "/1/compare/old%3D1%26new%3D2%26new.era%3Dlegacy"])("%s leads to itself", (text) => {
  expect(placeText(placeOf(text)!)).toBe(text);
});

test.each(["", "token=x", "/1", "/1/nowhere", "/x/tools", "/1/tools/%", "/1/tools?call=1", "//evil"])("“%s” is no place", (text) => {
  expect(placeOf(text)).toBeUndefined();
});

test("names of tools stay themselves", () => {
  for (const item of ["a b", "?call=1.2", "#", "../x", "%2F", "ü"]) expect(placeOf(placeText({ server: 1, view: "tools", item }))?.item).toBe(item);
});
