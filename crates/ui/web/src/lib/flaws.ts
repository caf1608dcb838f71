// What the validator says of a value, in the words of the page: one message for what is wrong once. Knows the errors of the validator, and
// not how they come about.
import type { OutputUnit } from "@cfworker/json-schema";

/** Errors that only say that there are others below them. */
const AROUND = ["properties", "patternProperties", "items", "prefixItems", "additionalItems", "allOf", "$ref", "$recursiveRef", "if", "dependentSchemas"];
/** Errors that say all that there is to say of a member: what its name or `false` says is left out. */
const MEMBER = ["additionalProperties", "unevaluatedProperties", "propertyNames"];
const LONGEST_LIST = 200;
/** What comes after so many errors is not looked at: each is held against the others. */
const MOST_ERRORS = 1000;

const isBelow = (error: OutputUnit, other: OutputUnit) => error.keywordLocation.startsWith(`${other.keywordLocation}/`);
const isChoice = ({ keyword }: OutputUnit) => keyword === "oneOf" || keyword === "anyOf";
const isConstant = ({ keyword }: OutputUnit) => keyword === "const" || keyword === "enum";

/** Without what is wrong by alternatives that the value is not meant as: their constant or their type is another one. */
function ofChosenBranches(errors: OutputUnit[]): OutputUnit[] {
  let left = errors;
  for (const choice of errors.filter(isChoice)) {
    const begin = `${choice.keywordLocation}/`;
    const branches = new Map<string, OutputUnit[]>();
    for (const error of left) {
      if (!error.keywordLocation.startsWith(begin) || !error.instanceLocation.startsWith(choice.instanceLocation)) continue;
      const branch = error.keywordLocation.slice(begin.length).split("/")[0]!;
      branches.set(branch, [...(branches.get(branch) ?? []), error]);
    }
    const isOther = (error: OutputUnit) => (isConstant(error) ? error.instanceLocation.split("/").length <= choice.instanceLocation.split("/").length + 1 : error.keyword === "type" && error.instanceLocation === choice.instanceLocation);
    const others = [...branches.values()].filter((group) => group.some(isOther));
    if (others.length === 0 || others.length === branches.size) continue;
    const gone = new Set([choice, ...others.flat()]);
    left = left.filter((error) => !gone.has(error));
  }
  return left;
}

const TYPES: Record<string, string> = { string: "a string", number: "a number", integer: "an integer", boolean: "true or false", object: "an object", array: "an array", null: "null" };
const named = (type: string) => TYPES[type] ?? type;

/** One of several values, as JSON writes them. */
const oneOf = (values: string[]) => `Must be ${values.length > 1 ? "one of " : ""}${values.join(", ").length > LONGEST_LIST ? `${values.join(", ").slice(0, LONGEST_LIST)}…` : values.join(", ")}`;

/** The values that an error of `const` or `enum` names. */
function constants({ error }: OutputUnit): string[] {
  const written = /^Instance does not match (?:any of )?(.*)\.$/s.exec(error)?.[1] ?? "";
  if (!error.startsWith("Instance does not match any of ")) return [written];
  try {
    return (JSON.parse(written) as unknown[]).map((one) => JSON.stringify(one));
  } catch {
    return [written];
  }
}

const WORDS: [RegExp, (...found: string[]) => string][] = [
  [/^Instance does not have required property "(.*)"$/s, (name) => `“${name}” is required`],
  [/^Instance type "(.*?)" is invalid\. Expected "(.*)"$/s, (is, wanted) => {
    const types = wanted.split('", "');
    return `Must be ${types.map(named).join(" or ")}${is === "number" && types.includes("integer") ? "" : `, and is ${is === "boolean" ? "a boolean" : named(is)}`}`;
  }],
  [/^Instance has "(.*)" but does not have "(.*)"$/s, (one, other) => `“${other}” is required beside “${one}”`],
  [/^Instance does not have at least (\d+) properties$/, (count) => `Must have at least ${count} ${count === "1" ? "property" : "properties"}`],
  [/^Instance does not have at most (\d+) properties$/, (count) => `Must have at most ${count} ${count === "1" ? "property" : "properties"}`],
  [/^Array has too many items \(\d+ > (\d+)\)$/, (count) => `Must have at most ${count} ${count === "1" ? "item" : "items"}`],
  [/^Array has too few items \(\d+ < (\d+)\)$/, (count) => `Must have at least ${count} ${count === "1" ? "item" : "items"}`],
  [/^String is too long \(\d+ > (\d+)\)$/, (count) => `Must have at most ${count} ${count === "1" ? "character" : "characters"}`],
  [/^String is too short \(\d+ < (\d+)\)$/, (count) => `Must have at least ${count} ${count === "1" ? "character" : "characters"}`],
  [/^String does not match pattern$/, () => "Does not match the pattern"],
  [/^String does not match format "(.*)"$/s, (format) => `Does not have the format “${format}”`],
  [/^Duplicate items at indexes (\d+) and (\d+)$/, (one, other) => `Items ${one} and ${other} are the same`],
  [/^\S+ is not a multiple of (\S+)$/, (factor) => `Must be a multiple of ${factor}`],
  [/^Property name "(.*)" does not match schema$/s, (name) => `“${name}” is not allowed as a name`],
  [/^Property "(.*)" does not match (?:additional|unevaluated) properties schema$/s, (name) => `“${name}” is not allowed`],
  [/^Instance matched "not" schema$/, () => "Fits the schema under “not”, and must not"],
  [/^Instance does not match any subschemas$/, () => "Fits none of the alternatives"],
  [/^Instance does not match exactly one subschema \((\d+) matches\)$/, (count) => (count === "0" ? "Fits none of the alternatives" : `Fits ${count} of the alternatives, and must fit exactly one`)],
  [/^False boolean schema$/, () => "Is not allowed"],
];

function words(error: OutputUnit): string {
  const text = error.error.replace(/\.$/, "");
  if (isConstant(error)) return oneOf(constants(error));
  const bound = /^\S+ is (?:less|greater) than (or equal to)? *(\S+)$/.exec(text);
  if (bound) {
    const isExclusive = bound[1] !== undefined || error.keyword.startsWith("exclusive");
    const isLower = /minimum$/i.test(error.keyword);
    return `Must be ${isLower ? (isExclusive ? "greater than" : "at least") : isExclusive ? "less than" : "at most"} ${bound[2]}`;
  }
  for (const [pattern, said] of WORDS) {
    const found = pattern.exec(text);
    if (found) return said(...found.slice(1));
  }
  return text.replace(/^Instance /, "The value ");
}

/** What is wrong, by the JSON pointer to it. */
export function told(errors: OutputUnit[]): { at: string; message: string }[] {
  let left = ofChosenBranches(errors.slice(0, MOST_ERRORS)).filter(({ keyword, error }) => !AROUND.includes(keyword) && !(keyword === "dependencies" && error.endsWith("schema.")));
  // Of alternatives that are nothing but constants of this value, the constants are said at once.
  const choices = new Map<OutputUnit, string>();
  for (const choice of left.filter(isChoice)) {
    const below = left.filter((error) => isBelow(error, choice) && error.instanceLocation.startsWith(choice.instanceLocation));
    if (below.length === 0 || !below.some(isConstant) || !below.every((error) => error.instanceLocation === choice.instanceLocation && (isConstant(error) || error.keyword === "type"))) continue;
    choices.set(choice, oneOf([...new Set(below.filter(isConstant).flatMap(constants))]));
    left = left.filter((error) => !below.includes(error));
  }
  for (const member of left.filter(({ keyword }) => MEMBER.includes(keyword))) {
    const name = /^Property (?:name )?"(.*)" (?:matches|does not)/s.exec(member.error)?.[1];
    const at = `${member.instanceLocation}/${(name ?? "").replaceAll("~", "~0").replaceAll("/", "~1")}`;
    const below = left.filter((error) => error !== member && (error.keyword === "false" || error.keywordLocation.startsWith(member.keywordLocation)) && (error.instanceLocation === at || error.instanceLocation.startsWith(`${at}/`)));
    const says = member.keyword === "propertyNames" || below.length === 0 || below.every(({ keyword }) => keyword === "false");
    left = left.filter((error) => (says ? !below.includes(error) : error !== member));
  }
  // What is none of the allowed values need not have their type or length as well.
  const closed = new Set(left.filter((error) => isConstant(error) || choices.has(error)).map(({ instanceLocation }) => instanceLocation));
  const plainly = left.filter((error) => !closed.has(error.instanceLocation) || isConstant(error) || isChoice(error) || error.keyword === "required");
  const said = plainly.map((error) => ({ at: error.instanceLocation.replace(/^#/, ""), message: choices.get(error) ?? words(error) }));
  return said.filter(({ at, message }, index) => said.findIndex((other) => other.at === at && other.message === message) === index);
}
