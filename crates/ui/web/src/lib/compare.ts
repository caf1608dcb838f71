// Two sides whose contracts are compared, as a text in the address of the page, and what came of it in groups.
import { word } from "./snippets";
import type { Connection, Json, JsonObject } from "./types";

/** A connection, perhaps in another era or revision or over another transport, or a file. */
export interface Side {
  connection?: number;
  file?: string;
  era?: string;
  revision?: string;
  transport?: string;
}
export type Sides = { old: Side; new: Side };
const PARTS = ["connection", "file", "era", "revision", "transport"] as const;

export function sidesText(sides: Sides): string {
  const pairs = (["old", "new"] as const).flatMap((name) => PARTS.flatMap((part): [string, string][] => (sides[name][part] === undefined ? [] : [[part === "connection" ? name : `${name}.${part}`, String(sides[name][part])]])));
  return new URLSearchParams(pairs).toString();
}

export function sidesOf(text: string | undefined): Sides | undefined {
  if (text === undefined) return undefined;
  const given = new URLSearchParams(text);
  const side = (name: string): Side => {
    const found: Side = {};
    if (/^\d+$/.test(given.get(name) ?? "")) found.connection = Number(given.get(name));
    for (const part of PARTS) if (part !== "connection" && given.has(`${name}.${part}`)) found[part] = given.get(`${name}.${part}`)!;
    return found;
  };
  const sides = { old: side("old"), new: side("new") };
  const isSide = ({ connection, file }: Side) => (connection === undefined) !== (file === undefined);
  return isSide(sides.old) && isSide(sides.new) ? sides : undefined;
}

export interface Change {
  level: "breaking" | "compatible" | "cosmetic";
  code: string;
  keys: string[];
  subject: string;
  pointer: string;
  reason: string;
  suspicion?: string;
  old?: Json;
  new?: Json;
}
export interface Offered {
  server: JsonObject | null;
  protocolVersions: string[];
  capabilities: JsonObject;
  hasInstructions: boolean;
  tools: number | null;
  prompts: number | null;
  resources: number | null;
  templates: number | null;
}
export interface Compared {
  diff: { old: string; new: string; keys: string[]; not_compared?: string[]; inconclusive?: boolean; changes: Change[] };
  old: Record<string, Offered>;
  new: Record<string, Offered>;
}

export interface Group {
  subject: string;
  what: "added" | "removed" | "renamed" | "changed";
  changes: Change[];
}

/** The changes by what changed, in the order in which they came: the worst first. */
export function groups(changes: Change[]): Group[] {
  const found = new Map<string, Group>();
  for (const change of changes) {
    const group = found.get(change.subject) ?? { subject: change.subject, what: "changed", changes: [] };
    found.set(change.subject, group);
    group.changes.push(change);
    const what = change.pointer === "" ? /-(added|removed|renamed)$/.exec(change.code)?.[1] : undefined;
    if (what) group.what = what as Group["what"];
  }
  return [...found.values()];
}

/** One line for each fact of the sides; a fact that is not the same for all kinds of clients says for which it is. */
export function facts(compared: Compared): { name: string; old: string; new: string }[] {
  const told = (side: Record<string, Offered>, of: (offered: Offered) => string) => {
    const values = Object.entries(side).map(([key, offered]) => [key, of(offered)] as const);
    const distinct = [...new Set(values.map(([, value]) => value))];
    return distinct.length <= 1 ? (distinct[0] ?? "") : values.map(([key, value]) => `${value} (${key})`).join(", ");
  };
  const line = (name: string, of: (offered: Offered) => string) => ({ name, old: told(compared.old, of), new: told(compared.new, of) });
  const number = (value: number | null) => (value === null ? "not listed" : String(value));
  return [
    { name: "Clients", old: Object.keys(compared.old).join(", "), new: Object.keys(compared.new).join(", ") },
    line("Server", ({ server }) => [server?.name, server?.version].filter((one) => one !== undefined).map(String).join(" ") || "unnamed"),
    line("Revisions", ({ protocolVersions }) => protocolVersions.join(", ")),
    line("Capabilities", ({ capabilities }) => Object.keys(capabilities).join(", ") || "none"),
    line("Instructions", ({ hasInstructions }) => (hasInstructions ? "yes" : "no")),
    line("Tools", ({ tools }) => number(tools)),
    line("Prompts", ({ prompts }) => number(prompts)),
    line("Resources", ({ resources }) => number(resources)),
    line("Templates", ({ templates }) => number(templates)),
  ];
}

/** The same on the command line; undefined where its flags would be for both sides. */
export function diffCommand(sides: Sides, connections: Connection[]): string | undefined {
  const words = [sides.old, sides.new].map(({ connection, file, era, revision, transport }) => {
    if (file !== undefined) return word(file);
    const spec = connections.find((one) => one.id === connection)?.spec;
    if (!spec || era || revision || transport || spec.era || spec.revision || spec.transport || spec.cwd || spec.config || spec.env.length > 0 || spec.headers.length > 0) return undefined;
    // A command beside a URL is the last one on the line.
    if (spec.url) return spec.command.length > 0 ? undefined : word(spec.url);
    if (spec.server) return word(spec.server);
    return spec.command.length > 0 ? word(spec.command.map(word).join(" ")) : undefined;
  });
  return words.includes(undefined) ? undefined : `mcproof diff ${words.join(" ")}`;
}
