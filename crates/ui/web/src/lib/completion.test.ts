import { expect, test } from "vitest";
import { completionOf } from "./completion";

test("what is filled in beside an argument goes with it, where the revision has it", () => {
  const ref = { type: "ref/prompt", name: "greet" };
  const filled = { department: "Sales", name: "Al", empty: "", number: 1 };
  const argument = { name: "name", value: "Al" };
  expect(completionOf(ref, "name", "Al", filled, "2025-11-25")).toEqual({ ref, argument, context: { arguments: { department: "Sales" } } });
  expect(completionOf(ref, "name", "Al", filled, "2026-07-28")).toHaveProperty("context");
  expect(completionOf(ref, "name", "Al", filled, "2025-03-26")).toEqual({ ref, argument });
  expect(completionOf(ref, "name", "Al", { name: "Al" }, "2025-11-25")).toEqual({ ref, argument });
});
