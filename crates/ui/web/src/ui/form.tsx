// A form made from a JSON Schema, beside the same value as JSON.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { isObject } from "../lib/calls";
import { beyond64, halfSurrogate, NOT_JSON, numberOf, own, typedJson, typedNumber, unfinished as unfinishedIn, write } from "../lib/lossless";
import { limited, Pattern } from "../lib/pattern";
import { boundsOf, choiceTexts, flaws, initial, initialOfBranch, judged, resolve, typesOf, type Flaw } from "../lib/schema";
import { draftTexts, setDraftText } from "../lib/store";
import { localTime, visible, withOffset } from "../lib/text";
import type { Json, JsonObject } from "../lib/types";
import { Button, Icon, Tabs } from "./basics";

interface FieldProps {
  schema: JsonObject;
  root: JsonObject;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  path: string;
  flaws: Flaw[];
  name: string;
  required: boolean;
  /** An item of an array: always there, and called by its place. */
  isItem?: boolean;
  /** The user has added it: it stays, also while it is empty, until the user removes it. */
  stays?: boolean;
  suggest?: (argument: string, value: string) => Promise<string[]>;
}

/** A value by its schema. `text` is what is typed into the JSON tab while it is not valid. */
export function SchemaForm({ schema, value, onChange, onValid, suggest, testid, slot }: {
  schema: JsonObject; value: Json; onChange: (value: Json) => void; onValid?: (valid: boolean) => void; testid: string;
  /** Where text that is not valid yet is kept while the user looks at something else. */
  slot?: string;
  suggest?: (argument: string, value: string) => Promise<string[]>;
}) {
  const [unfinished, setUnfinished] = useState<string | null>(null);
  const text = slot === undefined ? unfinished : (draftTexts.value.get(slot) ?? null);
  const setText = (text: string | null) => (slot === undefined ? setUnfinished(text) : text !== (draftTexts.peek().get(slot) ?? null) && setDraftText(slot, text));
  const [tab, setTab] = useState<"form" | "json">(text === null ? "form" : "json");
  const { flaws: found, unchecked } = useMemo(() => judged(schema, value), [schema, value]);
  const root = useMemo(() => resolve(schema, schema), [schema]);
  const broken = text !== null;
  const rounded = useMemo(() => beyond64(value)[0], [value]);
  const half = useMemo(() => halfSurrogate(value), [value]);
  const wrong = useMemo(() => (text === null ? undefined : wrongIn(text)), [text]);
  const unusable = broken || rounded !== undefined || half !== undefined || unfinishedIn(value).length > 0;
  useEffect(() => onValid?.(!unusable), [unusable]);
  const shape = useMemo(() => shapeOf(root, schema), [root, schema]);
  const given = isObject(value) ? value : {};
  return (
    <div class="schema-form" data-testid={testid}>
      <div class="form-bar">
        <Tabs label="Arguments as" tabs={[["form", "Form"], ["json", "JSON"]]} value={tab} onChange={setTab} />
        <span class="grow" />
        <span class="small form-state" aria-live="polite">{broken ? <span class="bad">{wrong === NOT_JSON ? "not valid JSON" : "duplicate name"}</span> : half !== undefined ? <span class="bad">cannot be sent</span> : found === undefined ? <span class="muted">{unfinishedIn(value).length > 0 ? "a number is not finished" : "schema not usable: not validated"}</span> : found.length > 0 ? <span class="bad">{found.length === 1 ? "1 problem" : `${found.length} problems`}</span> : unchecked.length > 0 ? <span class="muted" data-testid="not-checked" title={unchecked.map(visible).join("\n")}>{unchecked.length === 1 ? "a pattern was" : `${unchecked.length} patterns were`} not checked</span> : <span class="good"><Icon name="check" size={13} /> valid</span>}</span>
      </div>
      {tab === "json" ? <JsonField value={value} text={text} onText={setText} onChange={(next) => next !== undefined && onChange(next)} label="Arguments as JSON" rows={Math.min(18, Math.max(5, write(value, 2).split("\n").length + 1))} /> : broken ? (
        <div class="note error" role="alert" data-testid="not-json"><p>{wrong === NOT_JSON ? "What was typed as JSON is not valid" : `In what was typed as JSON, ${visible(wrong ?? "")}`}, and is kept until it is corrected.</p><div class="actions"><Button onClick={() => setTab("json")}>Correct the JSON</Button><Button kind="quiet" icon="trash" data-testid="discard-json" onClick={() => setText(null)}>Discard it</Button></div></div>
      ) : branches(shape) ? (
        <Control schema={shape} root={schema} value={given} onChange={(next) => onChange(next ?? {})} path="" flaws={found ?? []} name="arguments" required suggest={suggest} id={`${testid}-branches`} />
      ) : Object.keys(isObject(shape.properties) ? shape.properties : {}).length === 0 && !takesMore(shape) && Object.keys(given).length === 0 ? (
        <p class="muted small pad">No arguments.</p>
      ) : (
        <Members schema={shape} root={schema} value={given} onChange={onChange} path="" flaws={found ?? []} suggest={suggest} />
      )}
      {broken && tab === "json" && wrong !== NOT_JSON && <p class="note error" role="alert" data-testid="name-twice">{visible(wrong ?? "")}. The text is kept until it is corrected.</p>}
      {half !== undefined && <p class="note error" role="alert" data-testid="half-surrogate"><code>{visible(JSON.stringify(half).slice(0, 80))}</code> contains half a character (an unpaired surrogate), and cannot be sent.</p>}
      {rounded !== undefined && <p class="note error" role="alert" data-testid="too-long"><code>{visible(rounded.slice(0, 80))}</code> would be rounded on its way: mcproof sends integers of 64 bits, and decimal numbers of 15 to 17 digits.</p>}
      {found && found.filter((flaw) => tab === "json" || flaw.at === "").slice(0, 6).map((flaw) => <p class="note error" key={flaw.at + flaw.message}>{flaw.at && <code>{flaw.at}</code>} {flaw.message}</p>)}
    </div>
  );
}

const wrongIn = (text: string): string => {
  const typed = typedJson(text);
  return "wrong" in typed ? typed.wrong : NOT_JSON;
};

/** What the form shows: the arguments of each alternative together with those of all. */
export function shapeOf(root: JsonObject, whole: JsonObject): JsonObject {
  const all = branches(root)?.map((one) => resolve(one, whole));
  const own = isObject(root.properties) ? root.properties : undefined;
  const { oneOf: _, anyOf: __, ...rest } = root;
  if (!all?.some((one) => isObject(one.properties))) return own ? rest : root;
  const list = (value: Json | undefined) => (Array.isArray(value) ? value : []);
  const { properties: ___, required, ...beside } = rest;
  return { ...beside, oneOf: all.map((one) => ({ ...one, type: "object", properties: { ...own, ...(isObject(one.properties) ? one.properties : {}) }, required: [...list(required), ...list(one.required)] })) };
}

/** Whether an object says what members with other names are like. */
export function takesMore(schema: JsonObject): boolean {
  return isObject(schema.patternProperties) || schema.additionalProperties === true || isObject(schema.additionalProperties);
}

/** What a member of that name is like that is none of `properties`. */
export function schemaOfMore(schema: JsonObject, name: string): JsonObject {
  for (const [pattern, one] of Object.entries(isObject(schema.patternProperties) ? schema.patternProperties : {})) {
    try {
      if (isObject(one) && new Pattern(pattern).test(name)) return one;
    } catch {
      // The validator says so.
    }
  }
  return isObject(schema.additionalProperties) ? schema.additionalProperties : {};
}

function JsonField({ value, text, onText, onChange, label, rows }: { value: Json | undefined; text: string | null; onText: (text: string | null) => void; onChange: (value: Json | undefined) => void; label: string; rows: number }) {
  const [typed, setTyped] = useState<string | null>(null);
  const shown = text ?? typed ?? (value === undefined ? "" : write(value, 2));
  return (
    <textarea class="code" aria-label={label} spellcheck={false} rows={rows} value={shown} aria-invalid={text !== null} data-testid="json"
      onBlur={() => text === null && setTyped(null)}
      onInput={(event) => {
        const next = event.currentTarget.value;
        if (next.trim() === "") { onText(null); setTyped(next); onChange(undefined); return; }
        const read = typedJson(next);
        if ("wrong" in read) return onText(next);
        onText(null);
        setTyped(next);
        onChange(read.value);
      }} />
  );
}

function Members({ schema, root, value, onChange, path, flaws, suggest }: { schema: JsonObject; root: JsonObject; value: JsonObject; onChange: (value: JsonObject) => void; path: string; flaws: Flaw[]; suggest?: FieldProps["suggest"] }) {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const known = new Set(properties.map(([name]) => name));
  const more = Object.keys(value).filter((name) => !known.has(name));
  const put = (name: string, next: Json | undefined) => {
    const { [name]: _, ...rest } = value;
    if (next === undefined) return onChange(rest);
    onChange(Object.hasOwn(value, name) ? Object.fromEntries(Object.entries(value).map(([key, old]) => [key, key === name ? next : old])) : { ...value, [name]: next });
  };
  const ordered = [...properties].sort(([one], [other]) => Number(required.includes(other)) - Number(required.includes(one)));
  return (
    <div class="fields">
      {ordered.map(([name, property]) => (
        <Field key={name} name={name} schema={resolve(property, root)} root={root} value={own(value, name)} onChange={(next) => put(name, next)} path={`${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`} flaws={flaws} required={required.includes(name)} suggest={suggest} />
      ))}
      {more.map((name) => (
        <Field key={name} name={name} schema={resolve(schemaOfMore(schema, name), root)} root={root} value={own(value, name)} onChange={(next) => put(name, next)} path={`${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`} flaws={flaws} required={false} stays />
      ))}
      {takesMore(schema) && <OwnName taken={(name) => Object.hasOwn(value, name) || known.has(name)} add={(name) => { const one = resolve(schemaOfMore(schema, name), root); put(name, initial(one, root) ?? emptyOf(one)); }} />}
    </div>
  );
}

/** Adds a member whose name the schema leaves open. */
function OwnName({ taken, add }: { taken: (name: string) => boolean; add: (name: string) => void }) {
  const [name, setName] = useState("");
  const put = () => {
    if (name === "" || taken(name)) return;
    add(name);
    setName("");
  };
  return (
    <div class="with-action">
      <input type="text" aria-label="Name of another argument" placeholder="name of another argument" autocomplete="off" value={name} data-testid="own-name" onInput={(event) => setName(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) { event.preventDefault(); put(); } }} />
      <Button kind="quiet" icon="plus" data-testid="add-own-name" disabled={name === "" || taken(name)} onClick={put}>Add</Button>
    </div>
  );
}

function Field(props: FieldProps) {
  const { schema, name, required, isItem, stays, value, flaws, path, onChange } = props;
  const id = useId();
  const own = flaws.filter((flaw) => flaw.at === path);
  const types = typesOf(schema);
  const compound = types.includes("object") || types.includes("array") || isObject(value) || Array.isArray(value);
  const title = typeof schema.title === "string" && schema.title !== name ? schema.title : undefined;
  const describedBy = `${id}-about`;
  return (
    <div class={`field ${compound ? "compound" : ""}`} data-testid={`field-${name}`}>
      <div class="field-head">
        <label for={id} id={`${id}-label`}><span class="field-name">{isItem ? `[${name}]` : visible(name)}</span>{required && !isItem && <span class="required" title="required">*</span>}{title && <span class="muted"> {visible(title)}</span>}</label>
        <span class="field-type">{typeText(schema)}</span>
        {!required && value !== undefined && <button type="button" class="link small" onClick={() => onChange(undefined)} aria-label={`${stays ? "Remove" : "Clear"} ${name}`}>{stays ? "remove" : "clear"}</button>}
      </div>
      {typeof schema.description === "string" && <p class="field-about" id={describedBy}>{visible(schema.description)}</p>}
      <Control {...props} required={required || stays === true} id={id} />
      {own.map((flaw) => <p class="field-flaw" key={flaw.message}>{flaw.message}</p>)}
    </div>
  );
}

function typeText(schema: JsonObject): string {
  const types = typesOf(schema);
  const bounds = [
    ...boundsOf(schema),
    typeof schema.format === "string" && schema.format, schema.contentEncoding === "base64" && "Base64",
  ].filter(Boolean);
  const kind = Array.isArray(schema.enum) ? "enum" : schema.oneOf || schema.anyOf ? "one of" : types.join(" | ");
  return visible([kind, ...bounds].filter(Boolean).join(" "));
}

function branches(schema: JsonObject): Json[] | undefined {
  const all = Array.isArray(schema.oneOf) ? schema.oneOf : Array.isArray(schema.anyOf) ? schema.anyOf : undefined;
  return all && all.length > 0 ? all : undefined;
}

function Control(props: FieldProps & { id: string }) {
  const { schema, root, value, onChange, id, path, flaws, name, required, isItem, stays, suggest } = props;
  const [text, setText] = useState<string | null>(null);
  const [branch, setBranch] = useState<number | null>(null);
  const invalid = flaws.some((flaw) => flaw.at === path);
  const types = typesOf(schema);
  const common = { id, "aria-invalid": invalid, "data-testid": `input-${name}` };

  const all = branches(schema);
  const titled = all?.every((one) => isObject(one) && one.const !== undefined);
  const options: Json[] | undefined = Array.isArray(schema.enum) ? schema.enum : titled ? all!.map((one) => (one as JsonObject).const!) : schema.const !== undefined ? [schema.const] : undefined;
  if (options) {
    const titles = titled ? all!.map((one) => (one as JsonObject).title) : Array.isArray(schema.enumNames) ? schema.enumNames : [];
    const names = choiceTexts(options, titles);
    const at = options.findIndex((one) => write(one) === write(value));
    return (
      <select {...common} value={at < 0 ? "" : String(at)} onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : options[Number(event.currentTarget.value)])}>
        {(at < 0 || !required) && <option value="">{required ? "choose…" : "not set"}</option>}
        {names.map((text, index) => <option key={index} value={String(index)}>{visible(text)}</option>)}
      </select>
    );
  }
  if (all) {
    const simple = all.map((one) => resolve(one, root)).filter((one) => !(typesOf(one).length === 1 && typesOf(one)[0] === "null"));
    if (simple.length === 1) return <Control {...props} schema={{ ...simple[0]!, ...(schema.default !== undefined ? { default: schema.default } : {}) }} />;
    // One of several kinds may be null, which is no field to fill in.
    const nullable = simple.length < all.length;
    const isNull = nullable && value === null && branch === null;
    const fits = limited(() => simple.findIndex((one) => value !== undefined && flawsOf(one, root, value) === 0));
    const chosen = branch ?? (fits >= 0 ? fits : 0);
    return (
      <div class="branches">
        <select aria-label={`Kind of ${name}`} value={isNull ? "null" : String(chosen)} onChange={(event) => {
          if (event.currentTarget.value === "null") { setBranch(null); return onChange(null); }
          const next = Number(event.currentTarget.value);
          setBranch(next);
          onChange(initialOfBranch(simple[next]!, root));
        }}>
          {simple.map((one, index) => <option key={index} value={String(index)}>{visible(String(one.title ?? (isObject(one.properties) && Object.keys(one.properties).length > 0 ? Object.keys(one.properties).join(", ") : typesOf(one).join(" | ") || `option ${index + 1}`)))}</option>)}
          {nullable && <option value="null">null</option>}
        </select>
        {!isNull && <Control {...props} schema={simple[chosen]!} />}
      </div>
    );
  }
  if (types.includes("object") && (isObject(schema.properties) || takesMore(schema))) {
    if (value === undefined) return <Button kind="quiet" icon="plus" onClick={() => onChange(initial(schema, root) ?? {})}>Add {name}</Button>;
    return <Members schema={schema} root={root} value={isObject(value) ? value : {}} onChange={onChange} path={path} flaws={flaws} suggest={suggest} />;
  }
  const places = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
  if (types.includes("array") && (schema.items !== false || places.length > 0)) {
    const items = Array.isArray(value) ? value : [];
    const one = resolve(schema.items ?? {}, root);
    // Of a tuple, each place has a schema of its own.
    const at = (index: number) => (index < places.length ? resolve(places[index], root) : one);
    if (Array.isArray(one.enum) && schema.uniqueItems === true) {
      const texts = choiceTexts(one.enum);
      return (
        <div class="choices" role="group" aria-labelledby={`${id}-label`} id={id}>
          {one.enum.map((option, index) => {
            const on = items.some((item) => write(item) === write(option));
            return <label key={write(option)}><input type="checkbox" checked={on} onChange={() => onChange(on ? items.filter((item) => write(item) !== write(option)) : [...items, option])} />{visible(texts[index]!)}</label>;
          })}
        </div>
      );
    }
    return (
      <div class="array" id={id}>
        {items.map((item, index) => (
          <div class="array-item" key={index}>
            <Field {...props} stays={false} name={String(index)} schema={at(index)} value={item} path={`${path}/${index}`} required isItem onChange={(next) => onChange(items.map((old, at) => (at === index ? (next ?? null) : old)))} />
            <Button kind="quiet" icon="close" label={`Remove item ${index} of ${name}`} onClick={() => onChange(items.filter((_, at) => at !== index))} />
          </div>
        ))}
        {(schema.items !== false || items.length < places.length) && <Button kind="quiet" icon="plus" onClick={() => { const next = at(items.length); onChange([...items, initial(next, root) ?? emptyOf(next)]); }}>Add item</Button>}
      </div>
    );
  }
  if (types.length === 1 && types[0] === "boolean")
    return (
      <select {...common} value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.currentTarget.value === "" ? undefined : event.currentTarget.value === "true")}>
        {(value === undefined || !required) && <option value="">not set</option>}<option value="true">true</option><option value="false">false</option>
      </select>
    );
  if (types.includes("number") || types.includes("integer"))
    return <input {...common} type="text" inputMode="decimal" autocomplete="off" value={value === undefined || value === null ? "" : String(value)} placeholder={value === null ? "null" : schema.default !== undefined && schema.default !== null ? write(schema.default) : ""} onInput={(event) => {
      const typed = event.currentTarget.value;
      // What is not a number yet stays in the field as it is typed.
      if (typed === "" && !isItem && !stays) onChange(schema.default === null && !required ? null : undefined);
      else onChange(types.includes("string") ? (numberOf(typed) ?? typed) : typedNumber(typed));
    }} />;
  if (types.includes("string")) return <StringControl {...props} common={common} />;
  if (types.includes("null")) return <input {...common} value="null" disabled />;
  return (
    <>
      <JsonField value={value} text={text} onText={setText} onChange={onChange} label={`${name} as JSON`} rows={Math.min(10, Math.max(2, value === undefined ? 2 : write(value, 2).split("\n").length))} />
      {text !== null && <p class="field-flaw">{visible(wrongIn(text))}. Until it is corrected, {value === undefined ? "nothing" : <code>{visible(write(value).slice(0, 60))}</code>} is sent.</p>}
    </>
  );
}

function flawsOf(schema: JsonObject, root: JsonObject, value: Json): number {
  const whole = { ...(isObject(root.$defs) ? { $defs: root.$defs } : {}), ...(isObject(root.definitions) ? { definitions: root.definitions } : {}), ...schema };
  return flaws(whole, value)?.length ?? 1;
}

function emptyOf(schema: JsonObject): Json {
  const [type] = typesOf(schema);
  return type === "number" || type === "integer" ? typedNumber("") : type === "boolean" ? false : type === "object" ? {} : type === "array" ? [] : type === "null" ? null : "";
}

const INPUTS: Record<string, string> = { date: "date", time: "time", "date-time": "datetime-local", email: "email", uri: "url", password: "password" };

function StringControl({ schema, value, onChange, name, id, common, suggest, required }: FieldProps & { id: string; common: Record<string, unknown> }) {
  const text = value === undefined || value === null ? "" : typeof value === "string" ? value : write(value);
  const [long, setLong] = useState(text.includes("\n"));
  const [offers, setOffers] = useState<string[]>([]);
  // The server is asked once the typing pauses, and an answer that was overtaken is not shown.
  const asked = useRef({ number: 0, timer: 0 });
  useEffect(() => () => clearTimeout(asked.current.timer), []);
  const offer = (typed: string, pause: number) => {
    if (!suggest) return;
    const number = ++asked.current.number;
    clearTimeout(asked.current.timer);
    asked.current.timer = window.setTimeout(() => void suggest(name, typed).then((found) => { if (asked.current.number === number) setOffers(found); }), pause);
  };
  const format = typeof schema.format === "string" ? schema.format : "";
  const placeholder = value === null ? "null" : schema.default !== undefined && schema.default !== null ? String(schema.default) : Array.isArray(schema.examples) ? String(schema.examples[0] ?? "") : "";
  // An optional field that is emptied is as it was before: what is shown is what is sent.
  const put = (typed: string) => onChange(typed !== "" || required ? typed : schema.default === null ? null : undefined);
  if (schema.contentEncoding === "base64" || format === "byte" || format === "binary")
    return (
      <div class="file">
        <input {...common} type="file" onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (!file) return;
          const reader = new FileReader();
          reader.onload = () => onChange(String(reader.result).split(",")[1] ?? "");
          reader.readAsDataURL(file);
        }} />
        <input aria-label={`${name} as Base64`} class="mono" value={text} placeholder="Base64" onInput={(event) => put(event.currentTarget.value)} />
      </div>
    );
  if (long) return <textarea {...common} rows={5} value={text} placeholder={placeholder} onInput={(event) => put(event.currentTarget.value)} />;
  const kind: string = own(INPUTS, format) ?? "text";
  if (kind === "datetime-local" || kind === "time")
    return (
      <div class="file">
        <input {...common} {...({ type: kind } as { type: "time" })} value={localTime(text)} title="In the time zone of this browser" onInput={(event) => event.currentTarget.value && onChange(withOffset(event.currentTarget.value))} />
        <input aria-label={`${name} as text`} class="mono" value={text} placeholder={kind === "time" ? "12:00:00Z" : "2026-01-31T12:00:00Z"} onInput={(event) => put(event.currentTarget.value)} />
      </div>
    );
  return (
    <div class="with-action">
      <input {...common} {...({ type: kind } as { type: "text" })} value={text} placeholder={placeholder} autocomplete="off" list={suggest ? `${id}-list` : undefined} onInput={(event) => {
        put(event.currentTarget.value);
        offer(event.currentTarget.value, 200);
      }} onFocus={() => offer(text, 0)} />
      {suggest && <datalist id={`${id}-list`}>{offers.map((offer) => <option key={offer} value={offer} />)}</datalist>}
      {kind === "text" && <button type="button" class="link small" aria-label={`Write ${name} on several lines`} title="Several lines" onClick={() => setLong(true)}>¶</button>}
    </div>
  );
}
