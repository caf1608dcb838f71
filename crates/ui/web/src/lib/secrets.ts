// Passwords among arguments: what stands for them in what is kept and copied. Their values stay in the memory of the page.
import { isObject } from "./calls";
import { write } from "./lossless";
import { hasSecrets, mapSecrets } from "./schema";
import type { Json, JsonObject } from "./types";

/** A value that comes from a variable of the environment, until it is written in some language. No JSON text of people has these symbols. */
const MARK = /\ue001env\.(\w+)\ue001/g;
const mark = (name: string) => `\ue001env.${name}\ue001`;

const REDACTED = "[redacted]";

/** Which variable stands for which value: another value of the same name gets another variable. */
const variables = new Map<string, string[]>();

function variable(path: string[], secret: Json): string {
  const name = path.slice(path.findLastIndex((part) => !/^\d+$/.test(part))).join("_").toUpperCase().replaceAll(/\W/g, "_").replace(/^(?=\d|$)/, "SECRET");
  const text = write(secret);
  // What came back redacted may be any of them.
  if (text.includes(REDACTED)) return name;
  const known = variables.get(name) ?? [];
  if (!known.includes(text)) variables.set(name, [...known, text]);
  const number = (variables.get(name) ?? []).indexOf(text);
  return number === 0 ? name : `${name}_${number + 1}`;
}

/** Nothing is there, or a variable stands for it already: of this page, or of a suite that the program has written. */
const isTaken = (secret: Json) => secret === "" || secret === null || (typeof secret === "string" && /^(\ue001|\$\{env\.\w+\}$)/.test(secret));

/** A value in which a variable stands for each password and what else is only written. */
export function masked(value: Json, schema: Json | undefined): Json {
  if (!isObject(schema) || !hasSecrets(schema)) return value;
  return mapSecrets(value, schema, schema, (secret, path) => (isTaken(secret) ? secret : mark(variable(path, secret)))) ?? value;
}

/** The shortest secret that is looked for inside of other texts, as the program does. */
const SHORTEST = 4;

/** A value without these secrets: a server may say again what it was told. */
export function withoutTexts<V extends Json | undefined>(value: V, secrets: string[]): V {
  if (secrets.length === 0 || value === undefined) return value;
  const clean = (one: Json): Json => {
    if (typeof one === "string") return secrets.reduce((text, secret) => (text === secret ? REDACTED : secret.length >= SHORTEST ? text.replaceAll(secret, () => REDACTED) : text), one);
    if (Array.isArray(one)) return one.map(clean);
    return isObject(one) ? Object.fromEntries(Object.entries(one).map(([name, member]) => [name, clean(member)])) : one;
  };
  return clean(value) as V;
}

/** Whether a variable stands for something in it. */
export const isMasked = (value: Json | undefined): boolean => value !== undefined && write(value).includes("\ue001env.");

/** A text in which the variables stand as a suite writes them. */
export const inSuite = (text: string) => text.replaceAll(MARK, (_, name: string) => `\${env.${name}}`);
/** Inside of single quotes of a shell. */
export const inShell = (text: string) => text.replaceAll(MARK, (_, name: string) => `'"$${name}"'`);
/** Where a whole text in quotes is a variable. */
export const inCode = (text: string, code: (name: string) => string) => text.replaceAll(new RegExp(`"${MARK.source}"`, "g"), (_, name: string) => code(name));

/** A step of a suite whose arguments are masked. */
export function maskedStep(written: JsonObject, schema: Json | undefined): JsonObject {
  return isObject(written.with) ? { ...written, with: masked(written.with, schema) } : written;
}
