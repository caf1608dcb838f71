// JSON Schemas of servers: resolved as far as a form needs it, and values held against them.
import { format, Validator, type OutputUnit, type Schema, type SchemaDraft } from "@cfworker/json-schema";
import { isObject } from "./calls";
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
      const one = initial(resolve(property, root), root, depth + 1, room);
      if (one !== undefined && (required.includes(name) || !isObject(one) || Object.keys(one).length > 0)) begun.push([name, one]);
    }
    return Object.fromEntries(begun);
  }
  return undefined;
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

/** Without what is wrong by alternatives that the value is not meant as: their constant or their type is another one. */
function ofChosenBranches(errors: OutputUnit[]): OutputUnit[] {
  let left = errors;
  for (const choice of errors.filter(({ keyword }) => keyword === "oneOf" || keyword === "anyOf")) {
    const begin = `${choice.keywordLocation}/`;
    const branches = new Map<string, OutputUnit[]>();
    for (const error of left) {
      if (!error.keywordLocation.startsWith(begin) || !error.instanceLocation.startsWith(choice.instanceLocation)) continue;
      const branch = error.keywordLocation.slice(begin.length).split("/")[0]!;
      branches.set(branch, [...(branches.get(branch) ?? []), error]);
    }
    const isOther = (error: OutputUnit) => (error.keyword === "const" || error.keyword === "enum" ? error.instanceLocation.split("/").length <= choice.instanceLocation.split("/").length + 1 : error.keyword === "type" && error.instanceLocation === choice.instanceLocation);
    const others = [...branches.values()].filter((group) => group.some(isOther));
    if (others.length === 0 || others.length === branches.size) continue;
    const gone = new Set([choice, ...others.flat()]);
    left = left.filter((error) => !gone.has(error));
  }
  return left;
}

/** Holds a value against a schema. A server may choose both: the time for it is limited. */
export function judged(schema: JsonObject, value: Json): Judged {
  unchecked.clear();
  const open = unfinished(value).map(({ at, text }) => ({ at, message: text === "" ? "A number is missing" : `“${text}” is not a number as JSON writes it` }));
  try {
    const { errors } = limited(() => validator(schema)?.validate(plain(value))) ?? { errors: undefined };
    const found = errors && ofChosenBranches(errors).filter((error) => !["properties", "items", "allOf", "$ref", "prefixItems", "additionalItems"].includes(error.keyword))
      .map((error) => ({ at: error.instanceLocation.replace(/^#/, ""), message: error.error.replace(/\.$/, "").replace(/^Instance does not have required property "(.*)"$/, "“$1” is required") }))
      .filter(({ at }) => !open.some((one) => one.at === at));
    return { flaws: found && [...open, ...found], unchecked: [...unchecked] };
  } catch {
    return { flaws: undefined, unchecked: [...unchecked] };
  }
}

/** What is wrong with a value; `undefined` if the schema cannot be used. */
export function flaws(schema: JsonObject, value: Json): Flaw[] | undefined {
  return judged(schema, value).flaws;
}
