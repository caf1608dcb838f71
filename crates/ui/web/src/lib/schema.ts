// JSON Schemas of servers: resolved as far as a form needs it, and values held against them.
import { Validator, type Schema, type SchemaDraft } from "@cfworker/json-schema";
import { isObject } from "./calls";
import { own, plain } from "./lossless";
import type { Json, JsonObject } from "./types";

const DEEPEST = 12;

/** With local references and `allOf` followed. */
export function resolve(schema: Json | undefined, root: JsonObject, depth = 0): JsonObject {
  if (!isObject(schema) || depth > DEEPEST) return {};
  let found: JsonObject = schema;
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#")) {
    let at: Json | undefined = root;
    for (const part of schema.$ref.slice(1).split("/").filter((part) => part !== "")) {
      const key = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
      at = isObject(at) ? own(at, key) : Array.isArray(at) ? at[Number(key)] : undefined;
    }
    const { $ref: _, ...beside } = schema;
    found = { ...resolve(at, root, depth + 1), ...beside };
  }
  if (Array.isArray(found.allOf)) {
    const { allOf, ...beside } = found;
    let merged: JsonObject = {};
    for (const part of [...(allOf as Json[]), beside]) {
      const one = part === beside ? beside : resolve(part, root, depth + 1);
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

/** The types that a schema names. */
export function typesOf(schema: JsonObject): string[] {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.filter((one): one is string => typeof one === "string");
  if (isObject(schema.properties)) return ["object"];
  if (schema.items !== undefined) return ["array"];
  return [];
}

/** What a form begins with: defaults, and empty objects around them. */
export function initial(schema: JsonObject, root: JsonObject, depth = 0): Json | undefined {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (depth < 6 && isObject(schema.properties)) {
    const required = Array.isArray(schema.required) ? schema.required : [];
    const begun: [string, Json][] = [];
    for (const [name, property] of Object.entries(schema.properties)) {
      const one = initial(resolve(property, root), root, depth + 1);
      if (one !== undefined && (required.includes(name) || !isObject(one) || Object.keys(one).length > 0)) begun.push([name, one]);
    }
    return Object.fromEntries(begun);
  }
  return undefined;
}

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

/** What is wrong with a value; `undefined` if the schema cannot be used. */
export function flaws(schema: JsonObject, value: Json): Flaw[] | undefined {
  try {
    const { errors } = validator(schema)?.validate(plain(value)) ?? { errors: undefined };
    const found = errors?.filter((error) => !["properties", "items", "allOf", "$ref", "prefixItems", "additionalItems"].includes(error.keyword));
    return found?.map((error) => ({ at: error.instanceLocation.replace(/^#/, ""), message: error.error.replace(/\.$/, "").replace(/^Instance does not have required property "(.*)"$/, "“$1” is required") }));
  } catch {
    return undefined;
  }
}
