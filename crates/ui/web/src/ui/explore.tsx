// What a server offers: the list at the side, and the one that is looked at.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { post } from "../lib/api";
import { appUri } from "../lib/apps";
import { isObject } from "../lib/calls";
import { completionOf } from "../lib/completion";
import { own } from "../lib/lossless";
import { initial, resolve } from "../lib/schema";
import { isOver, taskChoice } from "../lib/tasks";
import { asTask, callOf, catalog, connection, currentSession, drafts, frameVersion, go, handshake, isFile, isUnderWay, item, loadList, received, request, run, runs, cancel, sessions, setAsTask, setDraft, subscriptionOf, toast, view, type List, type ListName, type Run } from "../lib/store";
import { clock, count, visible } from "../lib/text";
import type { Json, JsonObject, Outcome } from "../lib/types";
import { App } from "./app";
import { Badge, Button, Empty, Icon, Menu, Rows, Tabs } from "./basics";
import { SchemaForm } from "./form";
import { Markdown, Tree } from "./result";
import { keepMenu, ofTask, RunResult, stepOf, withAnswers } from "./story";
import { TasksSide } from "./tasks";

const titleOf = (one: JsonObject) => (typeof one.title === "string" && one.title !== "" ? one.title : isObject(one.annotations) && typeof one.annotations.title === "string" ? one.annotations.title : undefined);
const nameOf = (one: JsonObject) => String(one.name ?? "");

/** Whether all words stand in the text, in any order. */
const fits = (needle: string, ...texts: (string | undefined)[]) => {
  const text = texts.join(" ").toLowerCase();
  return needle.toLowerCase().split(/\s+/).every((word) => text.includes(word));
};

export function SideList() {
  const now = view.value;
  // Each list has a search of its own.
  const [needles, setNeedles] = useState<Record<string, string>>({});
  const list = `${connection.value?.id} ${now}`;
  const needle = own(needles, list) ?? "";
  const known = catalog.value;
  if (now === "tasks") return <TasksSide />;
  if (!known || !(now === "tools" || now === "prompts" || now === "resources")) return null;
  const lists: [ListName, List][] = now === "resources" ? [["resources", known.resources], ["templates", known.templates]] : [[now, known[now]]];
  const all = lists.flatMap(([kind, list]) => list.items.map((one) => ({ kind, one, key: kind === "tools" || kind === "prompts" ? nameOf(one) : String(one.uri ?? one.uriTemplate ?? "") })));
  const found = needle === "" ? all : all.filter(({ one, key }) => fits(needle, key, nameOf(one), titleOf(one), typeof one.description === "string" ? one.description : ""));
  const failed = lists.find(([, list]) => list.state === "failed");
  const loading = lists.some(([, list]) => list.state === "loading");
  const current = found.findIndex(({ key }) => key === item.value[now]);
  const live = connection.value?.status === "open";
  const paged = lists.filter(([, list]) => list.next !== undefined || (list.pages ?? 0) > 1);
  return (
    <div class="side-list" data-testid={`list-${now}`}>
      <div class="side-search">
        <Icon name="search" size={14} /><input type="search" aria-label={`Search ${now}`} placeholder={`Search ${now}`} value={needle} onInput={(event) => setNeedles({ ...needles, [list]: event.currentTarget.value })} />
        <Button kind="quiet" icon="again" label={`Read ${now} again`} onClick={() => lists.forEach(([name]) => void loadList(connection.value!.id, name))} />
        {live && <Button kind="quiet" icon="right" label={`Read the first page of ${now} only`} data-testid="first-page" onClick={() => lists.forEach(([name]) => void loadList(connection.value!.id, name, { one: true }))} />}
      </div>
      {failed && <p class="note error">{visible(failed[1].error ?? "")}</p>}
      {paged.map(([name, { pages = 0, next, state }]) => (
        <div class="pages small muted" key={name} data-testid={`pages-${name}`}><span aria-live="polite">{lists.length > 1 && `${name}: `}{count(pages, "page")}{next !== undefined && ", and more"}</span>
          {live && next !== undefined && state !== "loading" && <><button type="button" class="link small" data-testid="next-page" onClick={() => void loadList(connection.value!.id, name, { one: true, from: next })}>next page</button><button type="button" class="link small" data-testid="more-pages" onClick={() => void loadList(connection.value!.id, name, { from: next })}>all pages</button></>}</div>
      ))}
      {all.length === 0 ? <p class="muted small pad">{loading ? "Loading…" : failed ? "" : connection.value?.status === "recorded" ? `The session has no list of ${now}.` : `The server lists no ${now}.`}</p> : found.length === 0 ? <p class="muted small pad">Nothing matches.</p> : (
        <Rows items={found} height={44} label={now} testid={`items-${now}`} current={current} onMove={(index) => go(now, found[index]!.key)} row={({ one, kind, key }) => (
          <div class="offer">
            <span class="offer-name"><span class="clip">{visible(now === "resources" ? nameOf(one) || key : key)}</span>{kind === "templates" && <Badge>template</Badge>}</span>
            <span class="offer-about">{visible(String(now === "resources" ? key : (titleOf(one) ?? one.description ?? "")).slice(0, 120))}</span>
          </div>
        )} />
      )}
    </div>
  );
}

function Annotations({ tool }: { tool: JsonObject }) {
  const given = isObject(tool.annotations) ? tool.annotations : {};
  return (
    <>
      {given.readOnlyHint === true && <Badge kind="ok">read-only</Badge>}
      {given.readOnlyHint === false && given.destructiveHint !== false && <Badge kind="error">destructive</Badge>}
      {given.idempotentHint === true && <Badge>idempotent</Badge>}
      {given.openWorldHint === true && <Badge>open world</Badge>}
      {isObject(tool.execution) && typeof tool.execution.taskSupport === "string" && tool.execution.taskSupport !== "forbidden" && <Badge kind="info">task {tool.execution.taskSupport}</Badge>}
      {isObject(tool._meta) && (isObject(tool._meta.ui) || "ui/resourceUri" in tool._meta) && <Badge kind="info">app</Badge>}
    </>
  );
}

function About({ text }: { text: Json | undefined }) {
  if (typeof text !== "string" || text === "") return null;
  return <div class="about"><Markdown text={text} /></div>;
}

const isComing = ({ state }: List) => state === "idle" || state === "loading";

export function Explore() {
  const now = view.value as "tools" | "prompts" | "resources";
  const known = catalog.value;
  const key = item.value[now];
  const id = connection.value?.id;
  if (!known || id === undefined) return <Empty icon="plug" title="Not connected">Connect to see what the server offers.</Empty>;
  const first = (now === "resources" ? [...known.resources.items, ...known.templates.items] : known[now].items)[0];
  if (key === undefined) {
    const heading = <h1 class="visually-hidden">{now[0]!.toUpperCase() + now.slice(1)}</h1>;
    if (first === undefined) return <>{heading}<Empty icon="boxes" title={`No ${now}`}>{connection.value?.status === "recorded" ? "None were listed in the session." : "The server lists none."}</Empty></>;
    return <>{heading}<Empty icon={now === "tools" ? "wrench" : now === "prompts" ? "message" : "file"} title={`Choose one of the ${now}`}>Or press Ctrl-K and type a part of its name.</Empty></>;
  }
  const slot = `${id} ${now} ${key}`;
  if (now === "tools") {
    const tool = known.tools.items.find((one) => one.name === key);
    return tool ? <Tool key={slot} tool={tool} slot={slot} id={id} /> : isComing(known.tools) ? <p class="running" role="status"><span class="spinner" /> Loading…</p> : <Empty icon="wrench" title={`No tool ${visible(key)}`}>The server does not list it, or no longer.</Empty>;
  }
  if (now === "prompts") {
    const prompt = known.prompts.items.find((one) => one.name === key);
    return prompt ? <Prompt key={slot} prompt={prompt} slot={slot} id={id} /> : isComing(known.prompts) ? <p class="running" role="status"><span class="spinner" /> Loading…</p> : <Empty icon="message" title={`No prompt ${key}`} />;
  }
  const resource = known.resources.items.find((one) => one.uri === key);
  if (resource) return <Resource key={slot} resource={resource} slot={slot} id={id} />;
  const template = known.templates.items.find((one) => one.uriTemplate === key);
  return template ? <Template key={slot} template={template} slot={slot} id={id} /> : <Resource key={slot} resource={{ uri: key, name: key }} slot={slot} id={id} />;
}

/** Sends, for the button and for Ctrl-Enter alike; nothing where it cannot be sent, or runs already. */
function sender(slot: string, valid: boolean, send: () => void): (() => void) | undefined {
  return valid && connection.value?.status === "open" && !isUnderWay(runs.value.get(slot)) ? send : undefined;
}

function Send({ slot, id, text, send, method }: { slot: string; id: number; text: string; send: (() => void) | undefined; method: string }) {
  const last = runs.value.get(slot);
  const waiting = last !== undefined && isUnderWay(last);
  const outcome = last?.outcome;
  const task = outcome?.task === undefined ? undefined : sessions.get(outcome.session)?.tracker.tasks.all.get(outcome.task);
  // What had no response says nothing that a test could expect.
  const ended = outcome !== undefined && (outcome.task === undefined ? outcome.result !== undefined || outcome.error !== undefined : task !== undefined && isOver(task) && task.status !== "cancelled");
  const open = connection.value?.status === "open";
  return (
    <div class="send">
      {waiting ? <Button kind="danger" icon="stop" data-testid="cancel" onClick={() => void cancel(id, last.key)}>Cancel</Button> : <Button kind="primary" icon="play" data-testid="send" disabled={send === undefined} onClick={send}>{text}<kbd>Ctrl ↵</kbd></Button>}
      {!open && <NotConnected id={id} />}
      <span class="grow" />
      {ended && !waiting && <Menu icon="plus" label="Keep this call" text="Keep" testid="keep" items={keepMenu(stepOfRun(method, last!))} />}
    </div>
  );
}

/** Why nothing can be sent, and the way out of it. */
function NotConnected({ id }: { id: number }) {
  const status = connection.value?.status;
  const connect = () => void post(`connections/${id}/open`).catch((error: Error) => toast(error.message, "error"));
  return <span class="muted small">{status === "recorded" ? "recorded" : status === "opening" ? "connecting" : "not connected"}{!isFile && status !== "recorded" && status !== "opening" && <> <button type="button" class="link small" data-testid="connect-here" onClick={connect}>connect</button></>}</span>;
}

/** What was called, with what came of it, also where that came later. */
function stepOfRun(method: string, { params, outcome: known, asTask }: Run) {
  const outcome = known && received(known);
  const task = outcome?.task === undefined ? undefined : sessions.get(outcome.session)?.tracker.tasks.all.get(outcome.task);
  const step = { ...stepOf(outcome?.session ?? -1, method, params, task ? ofTask(task) : { result: outcome?.result, error: outcome?.error }), ...(asTask ? { task: true } : {}) };
  return outcome ? withAnswers(step, callOf(outcome), outcome.task) : step;
}

/** Ctrl-Enter sends wherever the keyboard is on the page that has the button, and also where it is nowhere. */
function useCtrlEnter(send: (() => void) | undefined) {
  const now = useRef(send);
  now.current = send;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.defaultPrevented) return;
      const main = document.getElementById("main");
      const button = main?.querySelector<HTMLElement>("[data-testid=send]");
      // In a narrow window, the page may be behind another pane.
      if (!button?.checkVisibility() || !(event.target === document.body || main!.contains(event.target as Node))) return;
      event.preventDefault();
      // A key that is held is pressed once.
      if (!event.repeat) now.current?.();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Tool({ tool, slot, id }: { tool: JsonObject; slot: string; id: number }) {
  const schema = useMemo(() => (isObject(tool.inputSchema) ? tool.inputSchema : {}), [tool]);
  const value = drafts.value.get(slot) ?? initial(resolve(schema, schema), schema) ?? {};
  const [valid, setValid] = useState(true);
  const [part, setPart] = useState<"call" | "schema">("call");
  const name = nameOf(tool);
  const app = appUri(tool);
  const choice = taskChoice(tool, handshake.value);
  const wantsTask = choice === "always" || (choice !== "never" && asTask.value.get(slot) === true);
  const send = sender(slot, valid, () => void run(slot, id, "tools/call", { name, arguments: value }, wantsTask ? {} : undefined));
  useCtrlEnter(send);
  return (
    <article class="detail" data-testid="tool">
      <header class="detail-head">
        <div class="detail-title"><h1>{visible(name)}</h1>{titleOf(tool) && <span class="muted">{visible(titleOf(tool)!)}</span>}<Annotations tool={tool} /></div>
        <About text={tool.description} />
        <Tabs label="Parts of the tool" tabs={[["call", "Call"], ["schema", "Definition"]]} value={part} onChange={setPart} />
      </header>
      {part === "schema" ? <Tree value={tool} open={5} /> : (
        <>
          <SchemaForm schema={schema} value={value} onChange={(next) => setDraft(slot, next)} onValid={setValid} testid="arguments" slot={slot} />
          {choice !== "never" && (
            <p class="as-task"><label class="inline"><input type="checkbox" data-testid="as-task" checked={wantsTask} disabled={choice === "always"} aria-describedby="as-task-about" onChange={(event) => setAsTask(slot, event.currentTarget.checked)} />Run as a task</label>
              <span class="small muted" id="as-task-about">{choice === "always" ? "The server runs this tool as a task only." : choice === "server" ? "The server decides whether the call becomes one." : "The response comes at once, the result later."}</span></p>
          )}
          <Send slot={slot} id={id} text="Call" send={send} method="tools/call" />
          {app !== undefined && runs.value.has(slot) && <App id={id} uri={app} tool={tool} slot={slot} />}
          <RunResult slot={slot} outputSchema={isObject(tool.outputSchema) ? tool.outputSchema : undefined} />
        </>
      )}
    </article>
  );
}

function completion(id: number, ref: JsonObject, slot: string) {
  if (!("completions" in (handshake.value?.capabilities ?? {}))) return undefined;
  return async (argument: string, value: string): Promise<string[]> => {
    const filled = drafts.peek().get(slot);
    const params = completionOf(ref, argument, value, isObject(filled) ? filled : {}, handshake.peek()?.protocolVersion ?? "");
    const outcome = await request(id, "completion/complete", params, { timeoutMs: 5000 }).catch(() => undefined);
    const values = isObject(outcome?.result?.completion) ? outcome.result.completion.values : undefined;
    return Array.isArray(values) ? values.map(String) : [];
  };
}

function Prompt({ prompt, slot, id }: { prompt: JsonObject; slot: string; id: number }) {
  const name = nameOf(prompt);
  const schema = useMemo(() => {
    const all = Array.isArray(prompt.arguments) ? prompt.arguments.filter(isObject) : [];
    const properties = Object.fromEntries(all.map((one) => [nameOf(one), { type: "string", ...(typeof one.description === "string" ? { description: one.description } : {}), ...(typeof one.title === "string" ? { title: one.title } : {}) }]));
    return { type: "object", properties, required: all.filter((one) => one.required === true).map(nameOf) } as JsonObject;
  }, [prompt]);
  const suggest = useMemo(() => completion(id, { type: "ref/prompt", name }, slot), [id, name, slot, handshake.value]);
  const value = drafts.value.get(slot) ?? {};
  const [valid, setValid] = useState(true);
  const send = sender(slot, valid, () => void run(slot, id, "prompts/get", { name, arguments: value }));
  useCtrlEnter(send);
  return (
    <article class="detail" data-testid="prompt">
      <header class="detail-head"><div class="detail-title"><h1>{visible(name)}</h1>{titleOf(prompt) && <span class="muted">{visible(titleOf(prompt)!)}</span>}</div><About text={prompt.description} /></header>
      <SchemaForm schema={schema} value={value} onChange={(next) => setDraft(slot, next)} onValid={setValid} suggest={suggest} testid="arguments" slot={slot} />
      <Send slot={slot} id={id} text="Get prompt" send={send} method="prompts/get" />
      <RunResult slot={slot} />
    </article>
  );
}

function Resource({ resource, slot, id }: { resource: JsonObject; slot: string; id: number }) {
  const uri = String(resource.uri ?? "");
  const [shown, setShown] = useState(false);
  const isApp = uri.startsWith("ui://");
  const declared = handshake.value?.capabilities.resources;
  const canSubscribe = isObject(declared) && declared.subscribe === true && connection.value?.status === "open";
  const modern = handshake.value?.era === "modern";
  const send = sender(slot, true, () => void run(slot, id, "resources/read", { uri }));
  useCtrlEnter(send);
  frameVersion.value;
  const { subscribed, updates } = subscriptionOf(currentSession.value, uri, currentSession.value?.id === connection.value?.sessions.at(-1)?.id ? connection.value?.subscriptions : []);
  const subscribe = async (open: boolean) => {
    try {
      // In the modern era, it is a stream that stays open.
      const outcome = modern ? await post<Outcome>(`connections/${id}/subscription`, { uri, open }) : await request(id, open ? "resources/subscribe" : "resources/unsubscribe", { uri });
      toast(outcome.error?.message ?? outcome.failure?.message ?? (open ? "Subscribed" : "No longer subscribed"), outcome.error || outcome.failure ? "error" : "info");
    } catch (error) {
      toast((error as Error).message, "error");
    }
  };
  return (
    <article class="detail" data-testid="resource">
      <header class="detail-head">
        <div class="detail-title"><h1>{visible(nameOf(resource) || uri)}</h1>{typeof resource.mimeType === "string" && <Badge>{visible(resource.mimeType)}</Badge>}</div>
        <p><code class="uri">{visible(uri)}</code></p><About text={resource.description} />
      </header>
      <Send slot={slot} id={id} text="Read" send={send} method="resources/read" />
      {canSubscribe && (
        <div class="actions pad" data-testid="subscription" data-status={subscribed ? "subscribed" : "none"}>
          {subscribed ? <Button kind="quiet" icon="bell" data-testid="unsubscribe" onClick={() => void subscribe(false)}>Unsubscribe</Button> : <Button icon="bell" data-testid="subscribe" onClick={() => void subscribe(true)}>Subscribe</Button>}
          {subscribed && <Badge kind="ok">subscribed</Badge>}
          {subscribed && <span class="small muted">{updates.length === 0 ? "No update yet" : `${count(updates.length, "update")}, the last at ${clock(updates.at(-1)!.start)} s: read it again to see what it has now`}</span>}
        </div>
      )}
      {shown ? <App id={id} uri={uri} /> : isApp && <div class="actions pad"><Button icon="play" data-testid="open-app" onClick={() => setShown(true)}>Open the app</Button></div>}
      <RunResult slot={slot} />
    </article>
  );
}

/** Fills `{name}`, and what RFC 6570 calls reserved expansion, `{+name}`. */
function expand(template: string, values: JsonObject): string {
  return template.replaceAll(/\{([+#./;?&]?)([^}]*)\}/g, (_, operator: string, names: string) => {
    const parts = names.split(",").map((name) => name.replace(/[*]$|:\d+$/, ""));
    const given = parts.filter((name) => own(values, name) !== undefined && own(values, name) !== "");
    // Half of a surrogate pair, which the form names, cannot be encoded.
    const text = (name: string) => String(values[name]).replaceAll(/\p{Surrogate}/gu, "\ufffd");
    const encode = (name: string) => (operator === "+" || operator === "#" ? encodeURI(text(name)) : encodeURIComponent(text(name)));
    if (given.length === 0) return "";
    if (operator === "?" || operator === "&") return operator + given.map((name) => `${name}=${encode(name)}`).join("&");
    if (operator === ";") return given.map((name) => `;${name}=${encode(name)}`).join("");
    const separator = operator === "/" || operator === "." ? operator : ",";
    return (operator === "+" ? "" : operator) + given.map(encode).join(separator);
  });
}

function Template({ template, slot, id }: { template: JsonObject; slot: string; id: number }) {
  const uri = String(template.uriTemplate ?? "");
  const names = [...uri.matchAll(/\{[+#./;?&]?([^}]*)\}/g)].flatMap((found) => found[1]!.split(",").map((name) => name.replace(/[*]$|:\d+$/, "")));
  const schema = useMemo(() => ({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])) }) as JsonObject, [uri]);
  const suggest = useMemo(() => completion(id, { type: "ref/resource", uri }, slot), [id, uri, slot, handshake.value]);
  const value = drafts.value.get(slot) ?? {};
  const filled = expand(uri, isObject(value) ? value : {});
  const [valid, setValid] = useState(true);
  const send = sender(slot, valid, () => void run(slot, id, "resources/read", { uri: filled }));
  useCtrlEnter(send);
  return (
    <article class="detail" data-testid="template">
      <header class="detail-head"><div class="detail-title"><h1>{visible(nameOf(template) || uri)}</h1><Badge>template</Badge></div><p><code class="uri">{visible(uri)}</code></p><About text={template.description} /></header>
      <SchemaForm schema={schema} value={value} onChange={(next) => setDraft(slot, next)} onValid={setValid} suggest={suggest} testid="arguments" />
      <p class="pad small">Reads <code class="uri">{visible(filled)}</code></p>
      <Send slot={slot} id={id} text="Read" send={send} method="resources/read" />
      <RunResult slot={slot} />
    </article>
  );
}
