import { expect, test, vi } from "vitest";

// The page asks its document and the system for colors as it begins.
vi.hoisted(() => {
  Object.assign(globalThis, {
    document: { getElementById: () => null, documentElement: { dataset: {} } },
    matchMedia: () => ({ matches: false, addEventListener: () => undefined }),
  });
});
const { go, item, select } = await import("./store");

test("each server has a tool of its own that is looked at", () => {
  select(1);
  go("tools", "ask");
  go("compare", "old=1&new=2");
  select(2);
  expect(item.value).toEqual({ compare: "old=1&new=2" });
  go("tools", "create_issue");
  select(1);
  expect(item.value.tools).toBe("ask");
  select(2);
  expect(item.value.tools).toBe("create_issue");
});
