// What servers sent, shown: as text, never as anything that runs.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isObject } from "../lib/calls";
import { own, read, write } from "../lib/lossless";
import { judged } from "../lib/schema";
import { tableOf, type Table } from "../lib/table";
import { duration, size, visible } from "../lib/text";
import type { Diagnostic, Json, JsonObject, Outcome } from "../lib/types";
import { Badge, CopyButton, Icon, Said, Tabs } from "./basics";

const MANY = 100;

/** A tree that is unfolded on demand. */
export function Tree({ value, open = 2 }: { value: Json; open?: number }) {
  return <div class="tree" role="group" tabIndex={0} aria-label="JSON"><Node value={value} open={open} /></div>;
}

function Node({ name, value, open }: { name?: string; value: Json; open: number }) {
  const compound = Array.isArray(value) || isObject(value);
  const [shown, setShown] = useState(open > 0);
  const [limit, setLimit] = useState(MANY);
  const label = name === undefined ? null : <span class="tree-name">{visible(name)}: </span>;
  if (!compound) return <div class="tree-leaf">{label}<Leaf value={value} /></div>;
  const entries: [string | undefined, Json][] = Array.isArray(value) ? value.map((one) => [undefined, one]) : Object.entries(value);
  const [begin, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return <div class="tree-leaf">{label}<span class="tree-mark">{begin}{end}</span></div>;
  return (
    <div class="tree-node">
      <button type="button" class="tree-fold" aria-expanded={shown} onClick={() => setShown(!shown)}>
        <Icon name={shown ? "down" : "right"} size={12} />{label}
        <span class="tree-mark">{begin}{shown ? "" : ` ${entries.length} ${end}`}</span>
      </button>
      {shown && (
        <>
          <div class="tree-inside">
            {entries.slice(0, limit).map(([key, one], index) => <Node key={key ?? index} name={key ?? (Array.isArray(value) && entries.length > 4 ? String(index) : undefined)} value={one} open={open - 1} />)}
            {entries.length > limit && <button type="button" class="link small" onClick={() => setLimit(limit + MANY * 5)}>{entries.length - limit} more</button>}
          </div>
          <span class="tree-mark">{end}</span>
        </>
      )}
    </div>
  );
}

/** Names that stand more than once in one object: readers take different ones of their values. */
export function Repeated({ names }: { names: string[] }) {
  if (names.length === 0) return null;
  return <p class="note warning" data-testid="repeated">{names.slice(0, 5).map((name) => <code key={name}>{visible(name)} </code>)}stands more than once in one object: the last value is shown.</p>;
}

const LONG = 4000;

function Leaf({ value }: { value: Json }) {
  const [whole, setWhole] = useState(false);
  if (typeof value === "string") {
    const cut = !whole && value.length > LONG;
    return <span class="tree-string">{visible(JSON.stringify(cut ? value.slice(0, LONG) : value))}{cut && <button type="button" class="link" onClick={() => setWhole(true)}>{size(value.length)} in all</button>}</span>;
  }
  return <span class={value === null ? "tree-null" : typeof value === "boolean" ? "tree-bool" : "tree-number"}>{String(value)}</span>;
}

const PURIFY = {
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"],
  ALLOWED_ATTR: ["href", "align", "start"],
  ALLOWED_URI_REGEXP: /^https?:/i,
  RETURN_DOM_FRAGMENT: true,
} as const;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
// HTML in Markdown stays text, and an image is named instead of loaded.
const marked = new Marked({ gfm: true, async: false, renderer: { html: ({ text }) => escaped(text), image: ({ text, href }) => escaped(`[image: ${text || href}]`) } });

/** Markdown with nothing in it that loads or runs; links are shown with where they lead, and open elsewhere. */
export function Markdown({ text }: { text: string }) {
  const host = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const html = marked.parse(visible(text.slice(0, 200_000)), { async: false });
    const fragment = DOMPurify.sanitize(html, { ...PURIFY, ALLOWED_TAGS: [...PURIFY.ALLOWED_TAGS], ALLOWED_ATTR: [...PURIFY.ALLOWED_ATTR] }) as unknown as DocumentFragment;
    for (const link of fragment.querySelectorAll("a")) {
      // What leads nowhere from here, such as to another file of the server, is no link.
      if (!link.hasAttribute("href")) {
        link.replaceWith(...link.childNodes);
        continue;
      }
      link.target = "_blank";
      link.rel = "noopener noreferrer nofollow";
      link.title = link.href;
    }
    for (const table of fragment.querySelectorAll<HTMLElement>("table, pre")) table.tabIndex = 0;
    host.current!.replaceChildren(fragment);
  }, [text]);
  return <div class="markdown" ref={host} />;
}

const looksLikeMarkdown = (text: string) => /^#{1,6} |\n#{1,6} |^\s*[-*] |\n\s*[-*] |\*\*|```|^\|.*\|$/m.test(text) && !/^\s*[[{<]/.test(text);

function asJson(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

export function Text({ text, mimeType }: { text: string; mimeType?: string }) {
  const json = useMemo(() => asJson(text), [text]);
  const table = useMemo(() => tableOf(json), [json]);
  const markdown = mimeType === "text/markdown" || (mimeType === undefined && looksLikeMarkdown(text));
  const kinds: [string, string][] = [...(json !== undefined ? [["json", "JSON"] as [string, string]] : []), ...(table ? [["table", "Table"] as [string, string]] : []), ...(markdown ? [["markdown", "Markdown"] as [string, string]] : []), ["text", "Text"]];
  const [kind, setKind] = useState(kinds[0]![0]);
  const chosen = kinds.some(([known]) => known === kind) ? kind : kinds[0]![0];
  return (
    <div class="block">
      <div class="block-bar">{kinds.length > 1 ? <Tabs label="Show as" tabs={kinds} value={chosen} onChange={setKind} /> : <span class="block-kind">text</span>}<span class="grow" /><span class="muted small">{size(text.length)}</span><CopyButton text={() => text} label="Copy text" /></div>
      {chosen === "json" && json !== undefined ? <Tree value={json} /> : chosen === "table" && table ? <Rows table={table} /> : chosen === "markdown" ? <Markdown text={text} /> : <Plain text={text} />}
    </div>
  );
}

function Rows({ table: { columns, rows } }: { table: Table }) {
  const [limit, setLimit] = useState(MANY);
  return (
    <div class="table-block" tabIndex={0} role="group" aria-label="Table" data-testid="table">
      <table><thead><tr>{columns.map((name) => <th key={name} scope="col">{visible(name)}</th>)}</tr></thead>
        <tbody>{rows.slice(0, limit).map((row, index) => <tr key={index}>{columns.map((name) => {
          const cell = own(row, name);
          return <td key={name}>{cell === undefined ? "" : visible((typeof cell === "string" ? cell : write(cell)).slice(0, 400))}</td>;
        })}</tr>)}</tbody></table>
      {rows.length > limit && <button type="button" class="link small" onClick={() => setLimit(limit + MANY * 5)}>{rows.length - limit} more</button>}
    </div>
  );
}

export function Plain({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const cut = !whole && text.length > 100_000;
  return <><pre class="text-block" tabIndex={0}>{visible(cut ? text.slice(0, 100_000) : text)}</pre>{cut && <button type="button" class="link" onClick={() => setWhole(true)}>Show all {size(text.length)}</button>}</>;
}

const IMAGES = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"];
const SOUNDS = ["audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/webm", "audio/mp4", "audio/aac", "audio/flac"];
const isBase64 = (text: string) => /^[A-Za-z0-9+/]*={0,2}$/.test(text);

/** An image or sound out of its bytes; SVG is a document that can hold anything, so it is shown as text. */
function Media({ data, mimeType }: { data: string; mimeType: string }) {
  const kind = mimeType.toLowerCase().split(";")[0]!.trim();
  if (!isBase64(data)) return <p class="note error">The data is not valid Base64.</p>;
  if (IMAGES.includes(kind)) return <img class="media" alt={`Image of the result, ${kind}`} src={`data:${kind};base64,${data}`} />;
  if (SOUNDS.includes(kind)) return <audio class="media" controls src={`data:${kind};base64,${data}`} />;
  return <p class="note">{visible(mimeType)}, {size(Math.floor((data.length * 3) / 4))}: not shown.</p>;
}

function Resource({ resource }: { resource: JsonObject }) {
  const { uri, mimeType, text, blob } = resource;
  const kind = typeof mimeType === "string" ? mimeType : undefined;
  return (
    <div class="block">
      <div class="block-bar"><span class="block-kind">resource</span><code class="clip">{visible(String(uri ?? ""))}</code>{kind && <Badge>{visible(kind)}</Badge>}</div>
      {typeof text === "string" ? <Text text={text} mimeType={kind} /> : typeof blob === "string" ? <Media data={blob} mimeType={kind ?? "application/octet-stream"} /> : <Tree value={resource} />}
    </div>
  );
}

export function Block({ block }: { block: Json }) {
  if (!isObject(block)) return <Tree value={block} />;
  switch (block.type) {
    case "text": return <Text text={String(block.text ?? "")} />;
    case "image":
    case "audio": return <div class="block"><div class="block-bar"><span class="block-kind">{block.type}</span><Badge>{visible(String(block.mimeType))}</Badge></div><Media data={String(block.data ?? "")} mimeType={String(block.mimeType ?? "")} /></div>;
    case "resource": return isObject(block.resource) ? <Resource resource={block.resource} /> : <Tree value={block} />;
    case "resource_link":
      return <div class="block"><div class="block-bar"><span class="block-kind">link</span><strong class="clip">{visible(String(block.title ?? block.name ?? ""))}</strong><code class="clip">{visible(String(block.uri ?? ""))}</code></div>{typeof block.description === "string" && <p class="muted">{visible(block.description)}</p>}</div>;
    default: return <Tree value={block} />;
  }
}

function Structured({ value, schema }: { value: JsonObject; schema?: JsonObject }) {
  const [kind, setKind] = useState<"tree" | "table">("tree");
  const table = useMemo(() => tableOf(value), [value]);
  const { flaws: found, unchecked } = useMemo(() => (schema ? judged(schema, value) : { flaws: undefined, unchecked: [] }), [schema, value]);
  return (
    <div class="block" data-testid="structured">
      <div class="block-bar"><span class="block-kind">structured content</span>{table && <Tabs label="Show as" tabs={[["tree", "JSON"], ["table", "Table"]]} value={kind} onChange={setKind} />}<span class="grow" />
        {schema && (found === undefined ? <Badge kind="warning">not validated: the schema is not usable, or takes too long</Badge> : found.length === 0 && unchecked.length > 0 ? <Badge kind="warning">a pattern of the schema was not checked</Badge> : found.length === 0 ? <Badge kind="ok">fits its schema</Badge> : <Badge kind="error">does not fit its schema</Badge>)}
        <CopyButton text={() => write(value, 2)} label="Copy structured content" /></div>
      {kind === "table" && table ? <Rows table={table} /> : <Tree value={value} open={3} />}
      {found?.slice(0, 8).map((flaw) => <p class="note error" key={flaw.at + flaw.message}><code>{flaw.at || "/"}</code> {flaw.message}</p>)}
    </div>
  );
}

export function Problem({ diagnostic }: { diagnostic: Diagnostic }) {
  const { message, hint, evidence, actual } = diagnostic;
  return (
    <div class="problem" role="alert" data-testid="diagnostic">
      <p class="problem-line"><Icon name="alert" /><strong><Said text={message} /></strong></p>
      {hint && <p class="hint"><span>What to do</span><Said text={hint} /></p>}
      {actual && <Plain text={actual} />}
      {evidence && evidence.stderr.length > 0 && <><h3>stderr</h3><Plain text={evidence.stderr.join("\n")} /></>}
    </div>
  );
}

/** What came of a request. */
export function Result({ outcome, method, outputSchema, repeated = [] }: { outcome: Outcome; method: string; outputSchema?: JsonObject; repeated?: string[] }) {
  const [raw, setRaw] = useState(false);
  const { result, error, failure, canceled, elapsedUs } = outcome;
  const isError = result?.isError === true;
  const isUnfinished = result?.resultType === "input_required";
  const state = canceled ? "canceled" : failure ? "no response" : error ? "error" : isError ? "tool error" : isUnfinished ? "input required" : "ok";
  const whole: Json = error ? (error as unknown as JsonObject) : (result ?? null);
  return (
    <section class="result" data-testid="result" data-status={state.replace(" ", "-")} aria-label="Result">
      <div class="result-bar">
        <Badge kind={state === "ok" ? "ok" : canceled || isUnfinished ? "warning" : "error"}>{state}</Badge>
        <span class="muted small">{duration(elapsedUs)}</span><span class="grow" />
        {(result || error) && <Tabs label="Form of the result" tabs={[["shown", "Result"], ["raw", "JSON"]]} value={raw ? "raw" : "shown"} onChange={(tab) => setRaw(tab === "raw")} />}
        {(result || error) && <CopyButton text={() => write(whole, 2)} label="Copy result" />}
      </div>
      {failure ? <Problem diagnostic={failure} /> : canceled ? <p class="note">The request was canceled.</p> : isUnfinished && !raw ? <><p class="note">The server requires input that it did not get: set a policy or roots under Answers, or send the call again.</p><Tree value={whole} open={4} /></> : raw ? <Tree value={whole} open={4} /> : error ? (
        <div class="problem"><p class="problem-line"><Icon name="alert" /><strong>{visible(error.message)}</strong><code>{error.code}</code></p>{error.data !== undefined && <Tree value={error.data} />}</div>
      ) : result ? <Shown result={result} method={method} outputSchema={outputSchema} /> : null}
      <Repeated names={repeated} />
    </section>
  );
}

export function Shown({ result, method, outputSchema }: { result: JsonObject; method: string; outputSchema?: JsonObject }) {
  const list = (value: Json | undefined) => (Array.isArray(value) ? value : []);
  if (method === "tools/call") {
    const { content, structuredContent, isError: _, _meta, resultType: __, ...rest } = result;
    return (
      <>
        {isObject(structuredContent) && <Structured value={structuredContent} schema={outputSchema} />}
        {list(content).map((block, index) => <Block key={index} block={block} />)}
        {list(content).length === 0 && !isObject(structuredContent) && <p class="note">The result has no content.</p>}
        {Object.keys(rest).length > 0 && <Tree value={rest} />}
      </>
    );
  }
  if (method === "resources/read") return <>{list(result.contents).map((one, index) => isObject(one) ? <Resource key={index} resource={one} /> : <Tree key={index} value={one} />)}</>;
  if (method === "prompts/get")
    return (
      <>
        {typeof result.description === "string" && <p class="muted">{visible(result.description)}</p>}
        {list(result.messages).map((message, index) => isObject(message) ? <div class="speech" key={index}><Badge>{visible(String(message.role))}</Badge><Block block={message.content ?? null} /></div> : null)}
      </>
    );
  return <Tree value={result} open={3} />;
}
