// Variables and headers of a server, one a line. Their values are not known here: a line without one keeps what was set.

export type Pairs = [string, string][];

export function pairs(text: string, separator: "=" | ":"): Pairs {
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "").map((line) => {
    const at = line.indexOf(separator);
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

/** A line for each name. */
export function lines(known: Pairs, separator: "=" | ":"): string {
  return [...new Set(known.map(([name]) => `${name}${separator}`))].join("\n");
}

/** The names that were shown and are no longer there. */
export function removed(shown: Pairs, given: Pairs): string[] {
  return [...new Set(shown.map(([name]) => name))].filter((name) => !given.some(([other]) => other === name));
}
