// Roots as a user types them: a URI, or the path of a folder on this machine.
import { isObject } from "./calls";
import type { Json } from "./types";

export interface Root {
  uri: string;
  name?: string;
}

/** As `answers:` has them: URIs, or objects with a name. */
export function rootsOf(written: Json[] | undefined): Root[] {
  return (written ?? []).flatMap((one) => (typeof one === "string" ? [{ uri: one }] : isObject(one) && typeof one.uri === "string" ? [{ uri: one.uri, ...(typeof one.name === "string" ? { name: one.name } : {}) }] : []));
}

export const writtenRoots = (roots: Root[]): Json[] => roots.map(({ uri, name }) => (name === undefined || name === "" ? uri : { uri, name }));

/** The URI of what was typed, or what is wrong with it. Every revision has `file://` alone (client/roots, data types). */
export function rootUri(typed: string): { uri: string } | { flaw: string } {
  const text = typed.trim();
  if (text === "") return { flaw: "Type the path of a folder, or a file:// URI." };
  const path = text.startsWith("/") && !text.startsWith("//") ? text : /^[A-Za-z]:[\\/]/.test(text) ? `/${text.replaceAll("\\", "/")}` : undefined;
  if (path !== undefined) return { uri: `file://${path.split("/").map((part, index) => (index === 1 && /^[A-Za-z]:$/.test(part) ? part : encodeURIComponent(part))).join("/")}` };
  const scheme = /^([A-Za-z][A-Za-z\d+.-]*):/.exec(text)?.[1];
  if (scheme === undefined) return { flaw: "Type the whole path, from the root." };
  if (scheme.toLowerCase() !== "file") return { flaw: `A root is a file:// URI; \`${scheme}:\` is another scheme.` };
  if (!/^file:\/\/[^/]*\//i.test(text)) return { flaw: "A file:// URI has a path, such as file:///home/me/project." };
  if (/[\s"<>\\^`{|}]|%(?![\da-f]{2})/i.test(text)) return { flaw: "The URI has a character that has to be percent-encoded. A path is encoded for you." };
  try {
    return { uri: new URL(text).href };
  } catch {
    return { flaw: "This is not a valid URI." };
  }
}
