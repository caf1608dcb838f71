// What a server is told when it is asked to complete an argument.
import type { JsonObject } from "./types";

/** The first revision with the other arguments in the request (2025-06-18, server/utilities/completion). */
const WITH_CONTEXT = "2025-06-18";

/** The parameters of `completion/complete`, with what is filled in beside the argument. */
export function completionOf(ref: JsonObject, name: string, value: string, filled: JsonObject, revision: string): JsonObject {
  const others = Object.entries(filled).filter((entry): entry is [string, string] => entry[0] !== name && typeof entry[1] === "string" && entry[1] !== "");
  return { ref, argument: { name, value }, ...(others.length > 0 && revision >= WITH_CONTEXT ? { context: { arguments: Object.fromEntries(others) } } : {}) };
}
