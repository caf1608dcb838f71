import { expect, test } from "vitest";
import { diffCommand, facts, groups, sidesOf, sidesText, type Change, type Compared, type Offered } from "./compare";
import type { Connection } from "./types";

test("sides survive an address", () => {
  for (const sides of [{ old: { connection: 1 }, new: { connection: 2 } }, { old: { file: "a & b=~/mcproof.lock" }, new: { connection: 1, era: "legacy", revision: "2025-06-18", transport: "sse" } }]) expect(sidesOf(sidesText(sides))).toEqual(sides);
  for (const text of [undefined, "", "old=1", "old=x&new=1", "old=1&old.file=a&new=2"]) expect(sidesOf(text)).toBeUndefined();
});

const change = (subject: string, code: string, pointer = "", level: Change["level"] = "breaking"): Change => ({ level, code, keys: [], subject, pointer, reason: "" });

test("changes are grouped by what changed", () => {
  const found = groups([change("tool `a`", "tool-removed"), change("tool `b`", "argument-added", "/inputSchema/properties/x"), change("tool `c`", "tool-added"), change("tool `b`", "description-changed", "/description", "cosmetic")]);
  expect(found.map(({ subject, what, changes }) => [subject, what, changes.length])).toEqual([["tool `a`", "removed", 1], ["tool `b`", "changed", 2], ["tool `c`", "added", 1]]);
});

test("facts name the kind of client where they differ", () => {
  const offered = (tools: number | null): Offered => ({ server: { name: "s", version: "1" }, protocolVersions: ["2025-11-25"], capabilities: { tools: {} }, hasInstructions: false, tools, prompts: null, resources: null, templates: null });
  const compared: Compared = { diff: { old: "a", new: "b", keys: [], changes: [] }, old: { "legacy/full": offered(2), "modern/full": offered(3) }, new: { "legacy/full": offered(2) } };
  const found = Object.fromEntries(facts(compared).map(({ name, old, new: now }) => [name, [old, now]]));
  expect(found.Tools).toEqual(["2 (legacy/full), 3 (modern/full)", "2"]);
  expect(found.Server).toEqual(["s 1", "s 1"]);
  expect(found.Prompts).toEqual(["not listed", "not listed"]);
});

test("a comparison is copied where the command line has words for it", () => {
  const spec = { name: "", server: null, config: null, command: ["node", "my server.js"], url: null, env: [], headers: [], withoutEnv: [], withoutHeaders: [], clientId: null, clientSecret: null, scope: null, cwd: null, roots: [], transport: null, era: null, revision: null };
  const connections = [{ id: 1, spec }] as unknown as Connection[];
  expect(diffCommand({ old: { file: "mcproof.lock" }, new: { connection: 1 } }, connections)).toBe(`mcproof diff mcproof.lock 'node '\\''my server.js'\\'''`);
  expect(diffCommand({ old: { file: "mcproof.lock" }, new: { connection: 1, era: "legacy" } }, connections)).toBeUndefined();
});
