// JSON Schemas of servers: resolved as far as a form needs it, and values held against them.
import { format, Validator, type Schema, type SchemaDraft } from "@cfworker/json-schema";
import { isObject } from "./calls";
import { told } from "./flaws";
import { own, plain, unfinished, write } from "./lossless";
import { limited, Pattern, unchecked } from "./pattern";
import type { Json, JsonObject } from "./types";

const DEEPEST = 12;
/** Parts of one schema that are put together, and members that a form begins with: a schema that refers to itself has no end. */
const MOST_PARTS = 2000;

/** With local references and `allOf` followed. */
export function resolve(schema: Json | undefined, root: JsonObject, depth = 0, room = { left: MOST_PARTS }): JsonObject {
  if (!isObject(schema) || depth > DEEPEST || room.left-- <= 0) return {};
  let found: JsonObject = schema;
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#")) {
    let at: Json | undefined = root;
    for (const part of schema.$ref.slice(1).split("/").filter((part) => part !== "")) {
      const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      at = isObject(at) ? own(at, key) : Array.isArray(at) ? at[Number(key)] : undefined;
    }
    const { $ref: _, ...beside } = schema;
    found = { ...resolve(at, root, depth + 1, room), ...beside };
  }
  if (Array.isArray(found.allOf)) {
    const { allOf, ...beside } = found;
    let merged: JsonObject = {};
    for (const part of [...(allOf as Json[]), beside]) {
      const one = part === beside ? beside : resolve(part, root, depth + 1, room);
      merged = {
        ...merged, ...one,
        properties: { ...(isObject(merged.properties) ? merged.properties : {}), ...(isObject(one.properties) ? one.properties : {}) },
        required: [...(Array.isArray(merged.required) ? merged.required : []), ...(Array.isArray(one.required) ? one.required : [])],
      };
    }
    if (Object.keys(merged.properties as JsonObject).length === 0) delete merged.properties;
    found = merged;
  }
  return found;
}

const isSecret = (schema: JsonObject) => schema.format === "password" || schema.writeOnly === true;

/** Whether a schema has a secret anywhere. */
export function hasSecrets(schema: Json): boolean {
  if (Array.isArray(schema)) return schema.some(hasSecrets);
  return isObject(schema) && (isSecret(schema) || Object.values(schema).some(hasSecrets));
}

/** A value with its passwords, and what else is only written, changed; without those that become undefined. */
export function mapSecrets(value: Json, schema: Json | undefined, root: JsonObject, change: (secret: Json, path: string[]) => Json | undefined, path: string[] = [], depth = 0): Json | undefined {
  if (schema === undefined || schema === true) return value;
  // What is this deep is not told apart.
  if (depth > DEEPEST) return change(value, path);
  const known = resolve(schema, root);
  if (isSecret(known)) return change(value, path);
  let left: Json | undefined = value;
  for (const one of [known.anyOf, known.oneOf].flatMap((some) => (Array.isArray(some) ? some : []))) if (left !== undefined) left = mapSecrets(left, one, root, change, path, depth + 1);
  if (Array.isArray(left)) {
    const first = Array.isArray(known.prefixItems) ? known.prefixItems : [];
    return left.map((one, index) => mapSecrets(one, first[index] ?? known.items, root, change, [...path, String(index)], depth + 1)).filter((one) => one !== undefined);
  }
  if (!isObject(left)) return left;
  const kept = Object.entries(left).map(([name, one]) => [name, mapSecrets(one, schemaOfMember(known, name), root, change, [...path, name], depth + 1)] as const);
  return Object.fromEntries(kept.filter((pair): pair is [string, Json] => pair[1] !== undefined));
}

/** What a member of that name is like. */
function schemaOfMember(schema: JsonObject, name: string): Json | undefined {
  const said = isObject(schema.properties) ? own(schema.properties, name) : undefined;
  if (said !== undefined) return said;
  for (const [pattern, one] of Object.entries(isObject(schema.patternProperties) ? schema.patternProperties : {})) {
    try {
      if (new Pattern(pattern).test(name)) return one;
    } catch {
      // The validator says so.
    }
  }
  return schema.additionalProperties;
}

/** A value without its passwords and what else is only written; undefined if it is one. */
export function withoutSecrets(value: Json, schema: Json | undefined, root: JsonObject): Json | undefined {
  return mapSecrets(value, schema, root, () => undefined);
}

/** The texts in a value that are secrets by its schema. */
export function secretsIn(value: Json, schema: JsonObject): string[] {
  const found: string[] = [];
  const take = (one: Json): void => {
    if (typeof one === "string") found.push(one);
    else if (Array.isArray(one)) one.forEach(take);
    else if (isObject(one)) Object.values(one).forEach(take);
    else if (one !== null && typeof one !== "boolean") found.push(write(one));
  };
  if (hasSecrets(schema)) mapSecrets(value, schema, schema, (secret) => void take(secret));
  return found.filter((text) => text !== "");
}

/** The types that a schema names. */
export function typesOf(schema: JsonObject): string[] {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.filter((one): one is string => typeof one === "string");
  if (isObject(schema.properties)) return ["object"];
  if (schema.items !== undefined) return ["array"];
  return [];
}

/** What a form begins with: defaults, and empty objects around them. */
export function initial(schema: JsonObject, root: JsonObject, depth = 0, room = { left: MOST_PARTS }): Json | undefined {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (depth < 6 && room.left-- > 0 && isObject(schema.properties)) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    const begun: [string, Json][] = [];
    for (const [name, property] of Object.entries(schema.properties)) {
      const known = resolve(property, root);
      // Of what is optional, a constant is no wish to send it.
      if (!required.includes(name) && !hasDefault(known, root)) continue;
      const one = initial(known, root, depth + 1, room);
      if (one !== undefined && (required.includes(name) || !isObject(one) || Object.keys(one).length > 0)) begun.push([name, one]);
    }
    return Object.fromEntries(begun);
  }
  return undefined;
}

/** Whether a form begins with something in it that the schema proposes. */
function hasDefault(schema: JsonObject, root: JsonObject, depth = 0, room = { left: MOST_PARTS }): boolean {
  if (schema.default !== undefined) return true;
  if (depth >= 6 || room.left-- <= 0 || !isObject(schema.properties)) return false;
  return Object.values(schema.properties).some((property) => hasDefault(resolve(property, root), root, depth + 1, room));
}

/** What an alternative begins with that the user chooses: its constants tell it from the others, also where they are optional. */
export function initialOfBranch(schema: JsonObject, root: JsonObject): Json | undefined {
  const begun = initial(schema, root);
  if (!isObject(begun) || !isObject(schema.properties)) return begun;
  const constants = Object.entries(schema.properties).flatMap(([name, property]): [string, Json][] => {
    const { const: only } = resolve(property, root);
    return only === undefined || Object.hasOwn(begun, name) ? [] : [[name, only]];
  });
  return Object.fromEntries([...constants, ...Object.entries(begun)]);
}

const plainly = (text: string) => text.replace(/\s+/g, " ").trim();

/** How the choices of an enumeration read: no two of them are the same. */
export function choiceTexts(options: Json[], titles: (Json | undefined)[] = []): string[] {
  const texts = options.map((one, index) => (typeof titles[index] === "string" ? titles[index] : typeof one === "string" ? one : write(one)));
  const seen = texts.map(plainly);
  const times = new Map<string, number>();
  for (const one of seen) times.set(one, (times.get(one) ?? 0) + 1);
  return texts.map((text, index) => {
    const isTwice = times.get(seen[index]!)! > 1;
    if (typeof titles[index] === "string") return isTwice ? `${text} (${write(options[index])})` : text;
    return typeof options[index] === "string" && (isTwice || text !== seen[index] || text === "") ? write(options[index]) : text;
  });
}

/** The bounds of a number, as they stand beside its type. */
export function boundsOf(schema: JsonObject): string[] {
  // In draft 4, `exclusiveMinimum` is true or false, and says what `minimum` means.
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema;
  const has = (value: Json | undefined) => value !== undefined && typeof value !== "boolean";
  return [
    has(minimum) && `${above === true ? ">" : "≥"} ${String(minimum)}`, has(above) && `> ${String(above)}`,
    has(maximum) && `${below === true ? "<" : "≤"} ${String(maximum)}`, has(below) && `< ${String(below)}`,
    has(multipleOf) && `multiple of ${String(multipleOf)}`,
  ].filter((one) => one !== false);
}

// The expression that the validator has for this format takes exponential time.
format.url = (text) => /^(?:https?|ftp):\/\/\S+$/i.test(text) && URL.canParse(text);

const validators = new WeakMap<object, Validator | null>();

function validator(schema: JsonObject): Validator | null {
  let known = validators.get(schema);
  if (known === undefined) {
    const named = typeof schema.$schema === "string" ? schema.$schema : "";
    const draft: SchemaDraft = named.includes("draft-04") ? "4" : /draft-0[67]/.test(named) ? "7" : named.includes("2019-09") ? "2019-09" : "2020-12";
    try {
      known = new Validator(plain(schema) as Schema, draft, false);
    } catch {
      known = null;
    }
    validators.set(schema, known);
  }
  return known;
}

export interface Flaw {
  /** A JSON pointer. */
  at: string;
  message: string;
}

export interface Judged {
  /** `undefined` if the schema cannot be used, or takes too long. */
  flaws: Flaw[] | undefined;
  /** Patterns that only an engine without a bound could check. */
  unchecked: string[];
}

/** Holds a value against a schema. A server may choose both: the time for it is limited. */
export function judged(schema: JsonObject, value: Json): Judged {
  unchecked.clear();
  const open = unfinished(value).map(({ at, text }) => ({ at, message: text === "" ? "A number is missing" : `“${text}” is not a number as JSON writes it` }));
  try {
    const { errors } = limited(() => validator(schema)?.validate(plain(value))) ?? { errors: undefined };
    const found = errors && told(errors).filter(({ at }) => !open.some((one) => one.at === at));
    return { flaws: found && [...open, ...found], unchecked: [...unchecked] };
  } catch {
    return { flaws: undefined, unchecked: [...unchecked] };
  }
}

/** What is wrong with a value; `undefined` if the schema cannot be used. */
export function flaws(schema: JsonObject, value: Json): Flaw[] | undefined {
  return judged(schema, value).flaws;
}
