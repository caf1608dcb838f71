// What a server gets that asks: by policies in the words of suites, else from the user. The roots are one of them.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { post } from "../lib/api";
import { isObject } from "../lib/calls";
import { write } from "../lib/lossless";
import { rootsOf, rootUri, writtenRoots, type Root } from "../lib/roots";
import { connection, handshake, overview, toast } from "../lib/store";
import { count, visible } from "../lib/text";
import type { Connection, Json, JsonObject, Policy } from "../lib/types";
import { Badge, Button, CopyButton, Empty, Said } from "./basics";

type Answers = Policy["answers"];

/** Changes that the program has not confirmed yet. */
const pending = signal(0);

/** Sets the policies; what is wrong with them, if anything is. */
async function setText(id: number, text: string): Promise<string | undefined> {
  pending.value++;
  try {
    await post(`connections/${id}/answers`, { text });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    pending.value--;
  }
}

/** As the program will tell it. */
function show(id: number, policy: Policy | undefined) {
  const now = overview.value!;
  overview.value = { ...now, connections: now.connections.map((one) => (one.id === id ? { ...one, policy } : one)) };
}

/** Changes some of the policies. They are shown at once, so that the next change does not undo this one. */
async function change({ id }: Connection, changes: { [name in keyof Answers]: Json | undefined }) {
  const before = overview.value?.connections.find((one) => one.id === id)?.policy;
  const answers = Object.fromEntries(Object.entries({ ...before?.answers, ...changes }).filter(([, value]) => value !== undefined)) as JsonObject;
  const text = Object.keys(answers).length === 0 ? "" : write(answers);
  show(id, { text, answers: answers as Answers });
  const wrong = await setText(id, text);
  if (wrong === undefined) return;
  show(id, before);
  toast(wrong, "error");
}

export function AnswersPage() {
  const at = connection.value;
  if (!at || at.status === "recorded") return <Empty icon="bell" title="Nobody asks here">A recorded session asks nothing more.</Empty>;
  return (
    <article class="detail" data-testid="answers" data-status={pending.value > 0 ? "saving" : "set"}>
      <header class="detail-head">
        <div class="detail-title"><h1>When the server asks</h1></div>
        <p class="muted">A question waits for you at the bottom right, unless a policy answers it. The traffic marks what a policy has answered. Policies are <code>answers</code> of a suite, and are saved with the tests.</p>
      </header>
      <section class="settings"><h2>Elicitation and sampling</h2>
        <ElicitationPolicy at={at} />
        <SamplingPolicy key={write(at.policy?.answers.sampling ?? null)} at={at} />
      </section>
      <Roots at={at} />
      <Script key={at.id} at={at} />
    </article>
  );
}

const toScript = () => document.querySelector<HTMLTextAreaElement>("[data-testid=policy-script]")?.focus();

function ElicitationPolicy({ at }: { at: Connection }) {
  const policy = at.policy?.answers.elicitation;
  const value = policy === undefined ? "ask" : typeof policy === "string" ? policy : "script";
  const choose = (next: string) => (next === "script" ? toScript() : void change(at, { elicitation: next === "ask" ? undefined : next }));
  return (
    <div class="policy">
      <label class="stacked">A form or a URL (elicitation)<select data-testid="policy-elicitation" value={value} onChange={(event) => { choose(event.currentTarget.value); if (event.currentTarget.value === "script") event.currentTarget.value = value; }}>
        <option value="ask">Ask me</option><option value="accept">Accept with the defaults of the form</option><option value="decline">Decline</option><option value="cancel">Cancel</option><option value="script">As the script says</option>
      </select></label>
      {value === "accept" && <p class="small muted">A form with a required field that has no default waits for you.</p>}
      {value === "script" && <p class="small muted">Accepted with <code>{visible(write(policy ?? null).slice(0, 300))}</code> and the defaults of the form.</p>}
    </div>
  );
}

/** A response as the fields have it; undefined for one that they cannot show. */
function spoken(policy: Json | undefined): { text: string; model: string; stopReason: string } | undefined {
  if (typeof policy === "string") return { text: policy, model: "mcproof", stopReason: "endTurn" };
  if (!isObject(policy) || !isObject(policy.content) || policy.content.type !== "text" || typeof policy.content.text !== "string" || typeof policy.model !== "string") return undefined;
  if (Object.keys(policy.content).length !== 2 || policy.role !== "assistant" || Object.keys(policy).some((name) => !["role", "content", "model", "stopReason"].includes(name))) return undefined;
  return { text: policy.content.text, model: policy.model, stopReason: typeof policy.stopReason === "string" ? policy.stopReason : "" };
}

function SamplingPolicy({ at }: { at: Connection }) {
  const policy = at.policy?.answers.sampling;
  const known = policy === "reject" ? undefined : spoken(policy);
  const set = policy === undefined ? "ask" : policy === "reject" ? "reject" : known ? "text" : "script";
  const [chosen, setChosen] = useState(set);
  const [text, setText] = useState(known?.text ?? "");
  const [model, setModel] = useState(known?.model ?? "mcproof");
  const [stopReason, setStopReason] = useState(known?.stopReason ?? "endTurn");
  const choose = (next: string) => {
    if (next === "script") return toScript();
    setChosen(next);
    if (next !== "text") void change(at, { sampling: next === "ask" ? undefined : next });
  };
  const isUsual = model === "mcproof" && stopReason === "endTurn" && text !== "reject";
  const submit = (event: Event) => {
    event.preventDefault();
    void change(at, { sampling: isUsual ? text : { role: "assistant", content: { type: "text", text }, model, ...(stopReason === "" ? {} : { stopReason }) } });
  };
  return (
    <form class="policy" onSubmit={submit}>
      <label class="stacked">A response of the model (sampling)<select data-testid="policy-sampling" value={chosen} onChange={(event) => { choose(event.currentTarget.value); if (event.currentTarget.value === "script") event.currentTarget.value = chosen; }}>
        <option value="ask">Ask me</option><option value="text">Answer with a fixed text</option><option value="reject">Reject</option><option value="script">As the script says</option>
      </select></label>
      {chosen === "text" && (
        <>
          <label class="stacked">Text<textarea rows={2} data-testid="policy-text" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
          <div class="settings-row">
            <label>Model<input value={model} data-testid="policy-model" onInput={(event) => setModel(event.currentTarget.value)} /></label>
            <label>Stop reason<input value={stopReason} data-testid="policy-stop" onInput={(event) => setStopReason(event.currentTarget.value)} /></label>
          </div>
          <div class="actions"><Button kind="primary" type="submit" data-testid="policy-set" disabled={text === "" || model === ""}>Answer with this</Button>{set !== "text" && <span class="small muted">Not set yet: it asks you.</span>}</div>
        </>
      )}
      {set === "script" && <p class="small muted">Answered with <code>{visible(write(policy ?? null).slice(0, 300))}</code></p>}
    </form>
  );
}

function Roots({ at }: { at: Connection }) {
  const declared = at.policy?.answers.roots !== undefined;
  const roots = rootsOf(at.policy?.answers.roots);
  const [edited, setEdited] = useState<number | null>(null);
  const put = (next: Root[]) => change(at, { roots: writtenRoots(next) });
  const era = at.status === "open" ? handshake.value?.era : undefined;
  const late = era === "legacy" && declared !== (at.declaresRoots ?? false);
  return (
    <section class="settings" data-testid="roots" data-status={declared ? "declared" : "none"}><h2>Roots</h2>
      <p class="small muted">Folders that the server may work in. {era === "modern" ? <>Each request declares the capability, and a server asks for the list in its result when it needs it. This era has no notification of changes. Roots are deprecated since 2026-07-28.</> : <>They are declared at the handshake, and each change of the list is told (<code>notifications/roots/list_changed</code>).</>}</p>
      <label class="inline"><input type="checkbox" data-testid="roots-declared" checked={declared} onChange={(event) => void change(at, { roots: event.currentTarget.checked ? [] : undefined })} />Offer roots to the server</label>
      {late && <p class="note warning" data-testid="roots-late">{declared ? "This session began without roots: the server learns of them with the next one." : "The server was offered roots in this session; asked for them, it gets an error."} <button type="button" class="link" data-testid="roots-reconnect" onClick={() => void post(`connections/${at.id}/open`)}>Reconnect</button></p>}
      {declared && (
        <>
          {roots.length > 0 && (
            <ul class="roots" aria-label="Roots">
              {roots.map((root, index) => edited === index ? (
                <li key={index}><RootForm root={root} others={roots.filter((one) => one !== root)} text="Save" done={() => setEdited(null)} put={(next) => put(roots.map((one) => (one === root ? next : one)))} /></li>
              ) : (
                <li key={index} class="step" data-testid="root"><code class="clip grow">{visible(root.uri)}</code>{root.name !== undefined && <span class="clip muted">{visible(root.name)}</span>}<Button kind="quiet" icon="wrench" label={`Edit root ${index + 1}`} onClick={() => setEdited(index)} /><Button kind="quiet" icon="close" label={`Remove root ${index + 1}`} onClick={() => { setEdited(null); void put(roots.filter((one) => one !== root)); }} /></li>
              ))}
            </ul>
          )}
          {roots.length === 0 && <p class="small muted">The list is empty: the server may ask for it, and gets no root.</p>}
          <RootForm key={roots.length} others={roots} text="Add" put={(next) => put([...roots, next])} />
        </>
      )}
    </section>
  );
}

function RootForm({ root, others, text, put, done }: { root?: Root; others: Root[]; text: string; put: (root: Root) => Promise<void>; done?: () => void }) {
  const [typed, setTyped] = useState(root?.uri ?? "");
  const [name, setName] = useState(root?.name ?? "");
  const [wrong, setWrong] = useState("");
  const id = root ? "root-edit" : "root-new";
  const submit = (event: Event) => {
    event.preventDefault();
    const found = rootUri(typed);
    if ("flaw" in found) return setWrong(found.flaw);
    if (others.some((one) => one.uri === found.uri)) return setWrong("This root is in the list already.");
    setWrong("");
    void put({ uri: found.uri, ...(name.trim() === "" ? {} : { name: name.trim() }) });
    done?.();
  };
  return (
    <form class="root-form" onSubmit={submit}>
      <label class="stacked">Path or file:// URI<input class="mono" data-testid={id} value={typed} spellcheck={false} autocomplete="off" placeholder="/home/me/project" aria-invalid={wrong !== ""} aria-describedby={wrong ? `${id}-wrong` : undefined} onInput={(event) => setTyped(event.currentTarget.value)} /></label>
      <label class="stacked">Name, optional<input value={name} data-testid={`${id}-name`} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <div class="actions"><Button icon={root ? "check" : "plus"} type="submit" data-testid={`${id}-put`}>{text}</Button>{done && <Button kind="quiet" onClick={done}>Cancel</Button>}</div>
      {wrong && <p class="note error" role="alert" id={`${id}-wrong`} data-testid="root-wrong"><Said text={wrong} /></p>}
    </form>
  );
}

function Script({ at }: { at: Connection }) {
  const set = at.policy?.text ?? "";
  const [draft, setDraft] = useState<string | null>(null);
  const [wrong, setWrong] = useState("");
  const text = draft ?? set;
  const submit = async () => {
    const failed = await setText(at.id, text);
    setWrong(failed ?? "");
    if (failed === undefined) setDraft(null);
  };
  const number = Object.keys(at.policy?.answers ?? {}).length;
  return (
    <section class="settings"><h2 id="script">Script</h2>
      <p class="small muted">The same as text, in the words of <code>answers</code> of a suite. Variables have no value here.</p>
      <textarea class="code" rows={Math.min(16, Math.max(5, text.split("\n").length + 1))} aria-labelledby="script" spellcheck={false} data-testid="policy-script" value={text} aria-invalid={wrong !== ""}
        placeholder={"elicitation: { color: red }\nsampling: The capital of France is Paris.\nroots:\n  - file:///home/me/project"}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); if (!event.repeat) void submit(); } }} />
      {wrong && <p class="note error" role="alert" data-testid="script-wrong"><Said text={wrong} /></p>}
      <div class="actions">
        <Button kind="primary" data-testid="script-set" disabled={draft === null || draft === set} onClick={() => void submit()}>Use this script<kbd>Ctrl ↵</kbd></Button>
        {draft !== null && draft !== set && <Button kind="quiet" onClick={() => { setDraft(null); setWrong(""); }}>Discard the changes</Button>}
        {set !== "" && <Button kind="quiet" icon="trash" data-testid="script-clear" onClick={() => { setDraft(null); setWrong(""); void setText(at.id, ""); }}>Remove all</Button>}
        <span class="grow" /><Badge>{count(number, "policy", "policies")}</Badge><CopyButton label="Copy the script" text={() => text} />
      </div>
    </section>
  );
}
