// Two contracts side by side, as `mcproof diff` compares them. The sides stand in the address; nothing is visited before a click.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../lib/api";
import { diffCommand, facts, groups, sidesOf, sidesText, type Change, type Compared, type Group, type Side, type Sides } from "../lib/compare";
import { write } from "../lib/lossless";
import { go, item, jobOf, overview, selected, startJob } from "../lib/store";
import { count, visible } from "../lib/text";
import type { Connection, Diagnostic, Json } from "../lib/types";
import { Badge, Button, CopyButton, Empty, Said, Tabs } from "./basics";
import { Problem } from "./result";

interface Came { compared?: Compared; diagnostic?: Diagnostic }

const REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const LEVELS = { breaking: "error", compatible: "ok", cosmetic: "plain" } as const;
const KINDS = { added: "ok", removed: "error", renamed: "warning", changed: "plain" } as const;
/** Groups that are drawn at first. */
const MANY = 100;
/** Characters of a value that are shown. */
const LONGEST = 6000;

/** The server that is looked at with another one; alone, in its two eras, and what was recorded with a lock. */
export function usualSides(connections: Connection[], id: number | null): Sides {
  const old = connections.find((one) => one.id === id) ?? connections[0];
  const other = connections.find((one) => one.id !== old?.id);
  if (!old) return { old: { file: "mcproof.lock" }, new: { file: "mcproof.lock" } };
  if (other) return { old: { connection: old.id }, new: { connection: other.id } };
  return old.status === "recorded" ? { old: { file: "mcproof.lock" }, new: { connection: old.id } } : { old: { connection: old.id, era: "legacy" }, new: { connection: old.id, era: "modern" } };
}

export function ComparePage() {
  const connections = overview.value?.connections ?? [];
  const text = item.value.compare;
  const asked = sidesOf(text);
  // A server may have been removed since.
  const isThere = (side: Side) => side.connection === undefined || connections.some((one) => one.id === side.connection);
  const sides = asked && isThere(asked.old) && isThere(asked.new) ? asked : usualSides(connections, selected.value);
  const put = (next: Sides) => go("compare", sidesText(next));
  const key = `compare ${sidesText(sides)}`;
  const { running, done, wrong } = jobOf<Came>(key);
  const start = () => void startJob(key, () => post<Came>("compare", sides));
  const [files, setFiles] = useState<string[]>([]);
  useEffect(() => void get<{ files: string[] }>("contracts").then(({ files }) => setFiles(files)).catch(() => undefined), []);
  const command = diffCommand(sides, connections);
  const isReady = sides.old.file !== "" && sides.new.file !== "";
  return (
    <article class="detail wide" data-testid="compare" data-status={running ? "running" : done?.compared ? "done" : done?.diagnostic || wrong ? "failed" : "idle"}>
      <header class="detail-head">
        <div class="detail-title"><h1>Compare contracts</h1></div>
        <p class="muted">What two servers promise, or one in two eras, revisions or transports, or a server and a file: each difference, and whether it breaks callers, as <code>mcproof diff</code> says. Servers are visited in sessions of their own; no tool is called.</p>
        <form class="compare-sides" onSubmit={(event) => { event.preventDefault(); if (isReady && !running) start(); }}>
          <Chooser title="Old" name="old" side={sides.old} connections={connections} files={files} onChange={(old) => put({ ...sides, old })} />
          <Button kind="quiet" icon="swap" label="Swap the sides" data-testid="compare-swap" onClick={() => put({ old: sides.new, new: sides.old })} />
          <Chooser title="New" name="new" side={sides.new} connections={connections} files={files} onChange={(next) => put({ ...sides, new: next })} />
          <div class="actions"><Button kind="primary" icon="compare" type="submit" data-testid="run-compare" disabled={running || !isReady}>{running ? "Comparing…" : done ? "Compare again" : "Compare"}</Button>{command && <><code class="clip muted small">{visible(command)}</code><CopyButton label="Copy the command line" text={() => command} /></>}</div>
        </form>
      </header>
      {running && <p class="running" role="status"><span class="spinner" /> Reading what both sides offer. It goes on while you look at something else.</p>}
      {wrong && <p class="note error" role="alert">{visible(wrong)}</p>}
      {done?.diagnostic && <Problem diagnostic={done.diagnostic} />}
      {done?.compared && <Found key={key} compared={done.compared} />}
    </article>
  );
}

function Chooser({ title, name, side, connections, files, onChange }: { title: string; name: "old" | "new"; side: Side; connections: Connection[]; files: string[]; onChange: (side: Side) => void }) {
  const at = connections.find((one) => one.id === side.connection);
  const choose = (value: string) => onChange(value === "file" ? { file: files[0] ?? "mcproof.lock" } : { connection: Number(value) });
  const set = (part: "era" | "revision" | "transport", value: string) => {
    const { [part]: _, ...rest } = side;
    onChange(value === "" ? rest : { ...rest, [part]: value });
  };
  return (
    <fieldset class="compare-side"><legend>{title}</legend>
      <select aria-label={`${title} side`} data-testid={`compare-${name}`} value={side.file !== undefined ? "file" : String(side.connection)} onChange={(event) => choose(event.currentTarget.value)}>
        {connections.map((one) => <option key={one.id} value={String(one.id)} selected={one.id === side.connection}>{visible(one.title)}{one.status === "recorded" ? ", recorded" : ""}</option>)}
        <option value="file" selected={side.file !== undefined}>A lock, a trace or a check…</option>
      </select>
      {side.file !== undefined && <label class="stacked">File, from the folder of <code>mcproof ui</code><input class="mono" list={`compare-files-${name}`} spellcheck={false} data-testid={`compare-${name}-file`} value={side.file} onChange={(event) => onChange({ file: event.currentTarget.value.trim() })} /><datalist id={`compare-files-${name}`}>{files.map((file) => <option key={file} value={file} />)}</datalist></label>}
      {at && at.status !== "recorded" && (
        <div class="settings-row">
          <label>Era<select data-testid={`compare-${name}-era`} value={side.era ?? ""} onChange={(event) => set("era", event.currentTarget.value)}><option value="">as set</option><option value="legacy">legacy</option><option value="modern">modern</option></select></label>
          <label>Revision<select data-testid={`compare-${name}-revision`} value={side.revision ?? ""} onChange={(event) => set("revision", event.currentTarget.value)}><option value="">all</option>{REVISIONS.map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
          {at.spec.url && <label>Transport<select data-testid={`compare-${name}-transport`} value={side.transport ?? ""} onChange={(event) => set("transport", event.currentTarget.value)}><option value="">as set</option><option value="http">Streamable HTTP</option><option value="sse">HTTP+SSE</option></select></label>}
        </div>
      )}
    </fieldset>
  );
}

type Level = Change["level"] | "all";

function Found({ compared }: { compared: Compared }) {
  const { diff } = compared;
  const [level, setLevel] = useState<Level>("all");
  const [needle, setNeedle] = useState("");
  const [most, setMost] = useState(MANY);
  const number = (level: Change["level"]) => diff.changes.filter((change) => change.level === level).length;
  const suspicious = diff.changes.filter((change) => change.suspicion !== undefined).length;
  const missed = diff.not_compared ?? [];
  // Where nothing was compared, nothing is the same.
  const isNothing = diff.keys.length === 0 && diff.changes.length === 0;
  const parts = needle.toLowerCase();
  const shown = groups(diff.changes.filter((change) => (level === "all" || change.level === level) && (parts === "" || `${change.subject} ${change.pointer} ${change.reason}`.toLowerCase().includes(parts))));
  const verdict = isNothing ? "nothing" : number("breaking") > 0 || suspicious > 0 ? "breaking" : diff.changes.length > 0 ? "changed" : diff.inconclusive ? "inconclusive" : "same";
  return (
    <>
      <p class="facts" data-testid="compare-verdict" data-verdict={verdict}>
        {verdict === "nothing" ? <Badge kind="warning">nothing to compare</Badge> : verdict === "inconclusive" ? <Badge kind="warning">no changes in what could be compared</Badge> : verdict === "same" ? <Badge kind="ok">no changes</Badge> : <>{(["breaking", "compatible", "cosmetic"] as const).map((one) => <Badge key={one} kind={number(one) > 0 ? LEVELS[one] : "plain"}>{number(one)} {one}</Badge>)}</>}
        {suspicious > 0 && <Badge kind="warning">{count(suspicious, "suspicious text")}</Badge>}
        {diff.keys.length > 0 && <span>for {visible(diff.keys.join("; "))}</span>}
      </p>
      {missed.map((reason) => <p class="note" key={reason} data-testid="not-compared">Not compared: <Said text={reason} /></p>)}
      <table class="diff facts-table" data-testid="compare-facts"><caption class="visually-hidden">Both sides in short</caption>
        <thead><tr><td /><th scope="col">Old: {visible(diff.old)}</th><th scope="col">New: {visible(diff.new)}</th></tr></thead>
        <tbody>{facts(compared).map(({ name, old, new: now }) => <tr key={name}><th scope="row">{name}{old !== now && <span class="muted"> ≠</span>}</th><td class={old !== now ? "was" : ""}>{visible(old)}</td><td class={old !== now ? "is" : ""}>{visible(now)}</td></tr>)}</tbody>
      </table>
      {diff.changes.length > 0 && (
        <div class="change-bar">
          <Tabs<Level> label="Changes of which level" value={level} onChange={setLevel} tabs={[["all", `All (${diff.changes.length})`], ...(["breaking", "compatible", "cosmetic"] as const).map((one): [Level, string] => [one, `${one[0]!.toUpperCase()}${one.slice(1)} (${number(one)})`])]} />
          <input type="search" class="boxed" placeholder="Search the changes" aria-label="Search the changes" data-testid="compare-search" value={needle} onInput={(event) => setNeedle(event.currentTarget.value)} />
        </div>
      )}
      {shown.slice(0, most).map((group) => <Changed key={group.subject} group={group} keys={diff.keys} />)}
      {shown.length > most && <button type="button" class="link" onClick={() => setMost(most + MANY)}>{shown.length - most} more</button>}
      {diff.changes.length > 0 && shown.length === 0 && <Empty icon="search" title="No change matches" />}
    </>
  );
}

function Changed({ group, keys }: { group: Group; keys: string[] }) {
  return (
    <section class="block change" data-testid="change" data-what={group.what} data-subject={group.subject}>
      <div class="block-bar"><h2><Said text={group.subject} /></h2><Badge kind={KINDS[group.what]}>{group.what}</Badge></div>
      {group.changes.map((change) => (
        <div class="change-one" key={change.code + change.pointer + change.reason + change.keys.join()} data-testid="change-one" data-level={change.level}>
          <p class="change-line"><Badge kind={LEVELS[change.level]}>{change.level}</Badge> <Said text={change.reason} /> {change.pointer !== "" && <code class="muted">{visible(change.pointer)}</code>} <span class="muted small">{visible(change.code)}</span>
            {change.keys.length < keys.length && <span class="muted small"> only for {visible(change.keys.join(", "))}</span>}</p>
          {change.suspicion !== undefined && <p class="note warning">Suspicious: the new text {visible(change.suspicion)}</p>}
          {(change.old !== undefined || change.new !== undefined) && <div class="both"><Value title="Old" value={change.old} look="was" /><Value title="New" value={change.new} look="is" /></div>}
        </div>
      ))}
    </section>
  );
}

function Value({ title, value, look }: { title: string; value: Json | undefined; look: "was" | "is" }) {
  if (value === undefined) return <p class="text-block muted"><span class="visually-hidden">{title}: </span>not there</p>;
  const text = typeof value === "string" ? value : write(value, 2);
  return <pre class={`text-block ${look}`} tabIndex={0} aria-label={title}>{visible(text.slice(0, LONGEST))}{text.length > LONGEST ? "\n…" : ""}</pre>;
}
