// A call's whole story on one page: messages, raw bytes, headers, times, stderr of that moment, findings.
import { useEffect, useMemo, useState } from "preact/hooks";
import { answersOf } from "../lib/answers";
import { firstText, isFailure, isObject, targetOf, type Call } from "../lib/calls";
import { own, read, repeated, write } from "../lib/lossless";
import { canCurl, cli, curl, failedWith, isRedacted, payloadOf, pytest, resultExpectation, rust, saysMore, suite, vitest } from "../lib/snippets";
import {
  brush, compared, connection, findings, frameVersion, go, handshake, inputSchemaIn, isFile, judge, newKey, overview, received, repeatedIn, request, run, runs, select, serverKey, sessions, setDraft, showCallOf, setDraftText, steps, story, toast, type Step,
} from "../lib/store";
import { secretsIn } from "../lib/schema";
import { isMasked, masked, withoutTexts } from "../lib/secrets";
import type { Task } from "../lib/tasks";
import { bytesOf, clock, copy, count, duration, rawText, size, visible } from "../lib/text";
import type { Connection, Frame, Json, JsonObject } from "../lib/types";
import { Badge, Button, CopyButton, Empty, Icon, Menu, Said, Tabs } from "./basics";
import { Plain, Repeated, Result, Tree } from "./result";
import { TaskPanel, TaskStatusBadge } from "./tasks";
import { STATUS_TEXT } from "./traffic";

type Part = "messages" | "raw" | "http" | "timing" | "stderr" | "findings";

function parsed(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

export function paramsOf(call: Call): JsonObject {
  const message = parsed(call.request);
  const params = isObject(message) && isObject(message.params) ? { ...message.params } : {};
  if (isObject(params._meta)) {
    const rest = Object.fromEntries(Object.entries(params._meta).filter(([name]) => name !== "progressToken" && !name.startsWith("io.modelcontextprotocol/")));
    if (Object.keys(rest).length > 0) params._meta = rest;
    else delete params._meta;
  }
  // What was sent again with the responses of the user is the call that it was.
  delete params.inputResponses;
  delete params.requestState;
  return params;
}

/** What came of a request, in a form in which it can be kept. */
export interface Came {
  result?: JsonObject;
  /** A JSON-RPC error. */
  error?: { code?: number; message?: string };
  /** It has ended, and not well. */
  failed?: boolean;
}

/** With variables for what the schema of the tool declares as passwords: a step is kept in the browser, and in files. */
export function stepOf(session: number, method: string, given: JsonObject, came: Came): Step {
  const title = String(given.name ?? given.uri ?? method);
  const args = method === "tools/call" && isObject(given.arguments) ? given.arguments : undefined;
  const schema = args ? inputSchemaIn(session, title) : {};
  const params = args ? { ...given, arguments: masked(args, schema) } : given;
  const secrets = args ? secretsIn(args, schema) : [];
  const result = withoutTexts(came.result, secrets);
  const error = came.error && { ...came.error, message: withoutTexts(came.error.message, secrets) };
  const { failed = error !== undefined || result?.isError === true } = came;
  if (failed) return { title, method, params, failed, ...(result ? {} : { refused: true }), error: failedWith(result ? firstText(result) : error?.message, title, result ? undefined : error?.code) };
  // An image beside a text is a part of the result as well.
  const payload = result && method === "tools/call" && !saysMore(result) ? payloadOf(result) : undefined;
  return { title, method, params, ...(payload !== undefined ? { payload } : result ? { result: resultExpectation(method, result) } : {}) };
}

export function stepOfCall(call: Call): Step {
  const message = parsed(call.response);
  const { result, error } = isObject(message) ? message : {};
  const task = taskOf(call);
  if (!task) return withAnswers(stepOf(call.session, call.method, paramsOf(call), { ...(isObject(result) ? { result } : {}), ...(isObject(error) ? { error: { code: call.code, message: typeof error.message === "string" ? error.message : undefined } } : {}) }), call);
  const { task: _, ...params } = paramsOf(call);
  return withAnswers({ ...stepOf(call.session, call.method, params, ofTask(task)), task: true }, call, task.id);
}

/** What came of a task. */
export function ofTask({ result, error, status }: Task): Came {
  return { result, error, failed: error !== undefined || status === "cancelled" || result?.isError === true };
}

/** With what the user, or a policy, responded to the server meanwhile. */
export function withAnswers(step: Step, call: Call | undefined, task?: string): Step {
  const answers = call && answersOf(sessions.get(call.session)?.tracker.calls ?? [], call, task);
  return answers ? { ...step, answers } : step;
}

/** The task that a call has become. */
export function taskOf(call: Call): Task | undefined {
  if (call.method !== "tools/call" || call.app) return undefined;
  for (const task of sessions.get(call.session)?.tracker.tasks.all.values() ?? []) if (task.call === call.key) return task;
  return undefined;
}

/** With the server that it is of. */
export const ofServer = (at: Connection, step: Step): Step => ({ ...step, server: serverKey(at), serverTitle: at.title });

export function keepMenu(step: Step) {
  const at = connection.value!;
  const put = async (what: string, text: string | null) => {
    if (text === null) return toast("That needs a server at a URL", "error");
    toast((await copy(text)) ? `Copied as ${what}${isRedacted(step.params) || isRedacted((step.answers ?? null) as Json) ? ": an argument was redacted, put its value in" : ""}` : "The browser does not allow copying");
  };
  // Only suites have a word for tasks.
  const isTool = step.method === "tools/call" && !step.task;
  return [
    { text: "Save as test step", icon: "plus" as const, run: () => { steps.value = [...steps.value, ofServer(at, step)]; toast(isMasked(step.params) ? "Saved: see Tests. Passwords come from the environment there" : "Saved: see Tests"); } },
    { text: "Copy as suite", icon: "copy" as const, run: () => void put("suite", suite(at, [step], step.title)) },
    { text: "Copy as command line", icon: "terminal" as const, run: () => void put("command line", cli(at, step)), disabled: step.task, why: "Only suites have tasks." },
    { text: "Copy as curl", icon: "copy" as const, run: () => void put("curl", curl(at, handshake.value, step.method, step.params)), disabled: !canCurl(at, handshake.value) || step.task || step.answers !== undefined, why: step.answers ? "The server asked the client meanwhile, which one request with curl cannot answer." : step.task ? "Only suites have tasks." : "Only a server over Streamable HTTP can be reached with curl." },
    { text: "Copy as pytest", icon: "copy" as const, run: () => void put("pytest", pytest(at, step)), disabled: !isTool, why: step.task ? "Only suites have tasks." : "The libraries have tools in copies only." },
    { text: "Copy as vitest", icon: "copy" as const, run: () => void put("vitest", vitest(at, step)), disabled: !isTool, why: step.task ? "Only suites have tasks." : "The libraries have tools in copies only." },
    { text: "Copy as Rust", icon: "copy" as const, run: () => void put("Rust", rust(at, step)), disabled: !isTool, why: step.task ? "Only suites have tasks." : "The libraries have tools in copies only." },
  ];
}

export function Story() {
  frameVersion.value;
  const at = story.value!;
  const data = sessions.get(at.session);
  const call = data?.tracker.find(at.key);
  const [part, setPart] = useState<Part>("messages");
  const owner = overview.value?.connections.find((one) => one.sessions.some((session) => session.id === at.session));
  const other = compared.value ? sessions.get(compared.value.session)?.tracker.find(compared.value.key) : undefined;
  if (!data || !call) return <Empty icon="activity" title="This call is no longer kept" />;
  const frames = call.frames.map((id) => data.frames.get(id)).filter((frame): frame is Frame => frame !== undefined);
  const near = data.stderr.filter((frame) => frame.at_us >= call.start - 50_000 && frame.at_us <= (call.end ?? data.until) + 250_000);
  const rules = findings.value.get(at.session)?.findings.filter(({ finding }) => finding.frames.some((frame) => call.frames.includes(frame)));
  const failed = isFailure(call);
  const task = taskOf(call);
  const own = call.kind === "request" && call.direction === "to-server" && !call.app && owner?.status === "open";
  const params = paramsOf(call);
  const again = async () => {
    if (!owner) return;
    if (isRedacted(params)) {
      toast("An argument was redacted: put its value in", "error");
      return edit();
    }
    const outcome = await request(owner.id, call.method, params, { key: newKey() });
    void showCallOf(outcome, at);
    toast(outcome.error ? `Sent again: ${outcome.error.message}` : outcome.failure ? `Sent again: ${outcome.failure.message}` : "Sent again");
  };
  const edit = () => {
    if (!owner) return;
    const view = call.method === "tools/call" ? "tools" : call.method === "prompts/get" ? "prompts" : call.method === "resources/read" ? "resources" : undefined;
    if (!view) return;
    const name = String(params.name ?? params.uri);
    setDraftText(`${owner.id} ${view} ${name}`, null);
    setDraft(`${owner.id} ${view} ${name}`, isObject(params.arguments) ? params.arguments : {});
    go(view, name);
  };
  const canEdit = own && ["tools/call", "prompts/get", "resources/read"].includes(call.method);
  const children = data.tracker.calls.filter((one) => one.parent === call.key);
  return (
    <article class="detail story" data-testid="story">
      <header class="detail-head">
        <div class="detail-title">
          <Button kind="quiet" icon="close" label="Close this call" onClick={() => (story.value = null)} />
          <span class={`call-way ${call.direction}`}><Icon name={call.direction === "to-server" ? "out" : "in"} /></span>
          <h1><span class="method">{visible(call.method)}</span>{call.target && <span class="muted"> {visible(call.target)}</span>}</h1>
          {call.fellBack ? <Badge>legacy era</Badge> : <Badge kind={failed ? "error" : call.status === "ok" ? "ok" : call.status === "pending" ? "info" : "warning"}>{STATUS_TEXT[call.status] === "…" ? "pending" : STATUS_TEXT[call.status]}</Badge>}
        </div>
        <div class="facts">
          <span>{call.kind}</span>{call.id !== undefined && <span>id {visible(write(call.id))}</span>}<span>at {clock(call.start)} s</span>
          {call.end !== undefined && call.kind !== "notification" && <span>{duration(call.end - call.start)}</span>}<span>{size(call.request.length)} out</span>{call.response !== undefined && <span>{size(call.response.length)} back</span>}
          {call.http?.status !== undefined && <span>HTTP {call.http.status}</span>}
        </div>
        <div class="actions">
          {own && <Button icon="again" onClick={() => void again()} data-testid="resend">Send again</Button>}
          {canEdit && <Button icon="wrench" onClick={edit}>Edit and send</Button>}
          {call.kind === "request" && call.direction === "to-server" && !call.app && call.response !== undefined && task?.status !== "cancelled" && <Menu icon="plus" label="Keep this call" text="Keep" items={keepMenu(stepOfCall(call))} />}
          <Button icon="compare" onClick={() => { compared.value = { session: at.session, key: call.key }; toast("Choose another call in the traffic to compare with"); }}>Compare</Button>
        </div>
      </header>
      {task && <p class="note">It became a task, which is <TaskStatusBadge task={task} />. <button type="button" class="link" onClick={() => go("tasks", task.id)}>Show the task</button></p>}
      {call.message && <p class={`note ${failed ? "error" : ""}`}>{visible(call.message)}</p>}
      {call.policies && <p class="note" data-testid="by-policy">{call.policies.map(([method, policy], index) => <span key={index}>{index > 0 && "; "}<code>{visible(method)}</code> was answered by the policy <code>{visible(write(policy).slice(0, 300))}</code></span>)}. {owner && owner.status !== "recorded" && !isFile && <button type="button" class="link" onClick={() => { select(owner.id); go("answers"); }}>Change it</button>}</p>}
      {call.fellBack && <p class="note">The server does not know this method, and accepted “initialize”: it speaks the legacy era.</p>}
      {other && (other.key !== call.key || compared.value!.session !== at.session) ? <Differences one={other} other={call} /> : (
        <>
          <Tabs<Part> label="Parts of the call" value={part} onChange={(next) => { setPart(next); if (next === "findings" && owner) void judge(at.session).catch((error: Error) => toast(error.message, "error")); }}
            tabs={[["messages", "Messages"], ["raw", `Raw (${frames.length})`], ...(call.http ? [["http", "HTTP"] as [Part, string]] : []), ["timing", "Timing"], ...(near.length > 0 ? [["stderr", `stderr (${near.length})`] as [Part, string]] : []), ...(isFile || at.session < 0 ? [] : [["findings", rules ? `Findings (${rules.length})` : "Findings"] as [Part, string]])]} />
          <div class="story-part">
            {part === "messages" && (
              <>
                <Message title={call.direction === "to-server" ? (call.app ? "Host" : "Client") : call.app ? "App" : "Server"} text={call.request} />
                {call.response !== undefined && <Message title={call.direction === "to-server" ? (call.app ? "App" : "Server") : call.app ? "Host" : "Client"} text={call.response} />}
                {children.length > 0 && <><h3>Meanwhile</h3>{children.slice(0, 200).map((child) => <button type="button" class="child" key={child.key} onClick={() => (story.value = { session: at.session, key: child.key })}><span class={`call-way ${child.direction}`}><Icon name={child.direction === "to-server" ? "out" : "in"} size={13} /></span><span>{visible(child.method)}</span><span class="muted">{visible(child.target ?? "")}</span><span class="grow" /><span class="muted small">{clock(child.start)}</span></button>)}</>}
              </>
            )}
            {part === "raw" && frames.map((frame) => <RawFrame key={frame.id} frame={frame} />)}
            {part === "http" && frames.filter((frame) => frame.body.kind === "http-request" || frame.body.kind === "http-response").map((frame) => <Head key={frame.id} frame={frame} />)}
            {part === "timing" && <Timing call={call} frames={frames} children_={children} />}
            {part === "stderr" && <Plain text={near.map((frame) => `${clock(frame.at_us)}  ${frame.body.kind === "stderr" || frame.body.kind === "stdout" ? rawText(frame.body.bytes) : ""}`).join("\n")} />}
            {part === "findings" && (rules === undefined ? <p class="muted pad">Judging the session…</p> : rules.length === 0 ? <p class="muted pad">No rule finds fault with these frames. What was not tried in this session is not judged: run a check for that.</p> : rules.map(({ rule, requirement, finding }) => (
              <div class="finding" key={rule + finding.message}><p><Badge kind={finding.severity === "note" ? "info" : finding.severity}>{finding.severity}</Badge> <strong><Said text={finding.message} /></strong></p><p class="muted small"><Said text={requirement} /></p><p class="hint"><span>What to do</span><Said text={finding.remedy} /></p><p class="small"><code>{rule}</code></p></div>
            )))}
          </div>
        </>
      )}
    </article>
  );
}

function Message({ title, text }: { title: string; text: string }) {
  const value = useMemo(() => parsed(text), [text]);
  const twice = useMemo(() => repeated(text), [text]);
  return <div class="block"><div class="block-bar"><span class="block-kind">{title}</span><span class="grow" /><span class="muted small">{size(text.length)}</span><CopyButton text={() => text} label={`Copy what the ${title.toLowerCase()} sent`} /></div>{value === undefined ? <Plain text={text} /> : <Tree value={value} open={4} />}<Repeated names={twice} /></div>;
}

function hex(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, 4096); at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    lines.push(`${at.toString(16).padStart(6, "0")}  ${part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ").padEnd(47)}  ${part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("")}`);
  }
  return lines.join("\n") + (bytes.length > 4096 ? `\n… ${size(bytes.length)} in all` : "");
}

function RawFrame({ frame }: { frame: Frame }) {
  const [form, setForm] = useState<"text" | "hex">("text");
  const { body } = frame;
  const raw = body.kind === "http-request" ? body.body : "bytes" in body ? body.bytes : null;
  const what = body.kind === "http-request" ? `${body.method} ${body.url}` : body.kind === "http-response" ? `HTTP ${body.status}` : body.kind === "http-end" ? (body.error ?? "end of the exchange") : body.kind === "note" ? body.text : body.kind;
  return (
    <div class="block">
      <div class="block-bar"><span class="muted small">#{frame.id}</span><span class="muted small">{clock(frame.at_us)}</span><span class={`call-way ${frame.direction}`}>{frame.direction === "local" ? "" : <Icon name={frame.direction === "to-server" ? "out" : "in"} size={13} />}</span><span class="clip">{visible(what)}</span><span class="grow" />{raw !== null && <Tabs label="Bytes as" tabs={[["text", "Text"], ["hex", "Hex"]]} value={form} onChange={setForm} />}</div>
      {raw !== null && (form === "text" ? <Plain text={rawText(raw)} /> : <pre class="text-block" tabIndex={0}>{hex(bytesOf(raw))}</pre>)}
      {(body.kind === "http-request" || body.kind === "http-response") && raw === null && <Head frame={frame} />}
    </div>
  );
}

export function Head({ frame }: { frame: Frame }) {
  const { body } = frame;
  if (body.kind !== "http-request" && body.kind !== "http-response") return null;
  return (
    <div class="block">
      <div class="block-bar"><span class="block-kind">{body.kind === "http-request" ? "request" : "response"}</span><code class="clip">{visible(body.kind === "http-request" ? `${body.method} ${body.url}` : `HTTP ${body.status}`)}</code></div>
      <table class="headers"><tbody>{body.headers.map(([name, value], index) => <tr key={index} class={/^(mcp-|last-event-id|www-authenticate|authorization)/i.test(name) ? "of-mcp" : ""}><th scope="row">{visible(name)}</th><td>{visible(value)}</td></tr>)}</tbody></table>
    </div>
  );
}

function Timing({ call, frames, children_ }: { call: Call; frames: Frame[]; children_: Call[] }) {
  const end = call.end ?? frames.at(-1)?.at_us ?? call.start;
  const total = Math.max(1, end - call.start);
  const head = frames.find((frame) => frame.body.kind === "http-response");
  const spans: [string, number, number][] = [];
  if (head) {
    spans.push(["until the head of the response", call.start, head.at_us], ["until the message", head.at_us, end]);
  } else if (call.end !== undefined) spans.push(["until the response", call.start, end]);
  for (const child of children_.slice(0, 40)) spans.push([`${child.method} ${child.target ?? ""}`, child.start, child.end ?? end]);
  return (
    <div class="timing">
      {spans.map(([text, from, to], index) => (
        <div class="timing-row" key={index}><span class="clip">{visible(text)}</span><span class="timing-bar"><i style={{ left: `${Math.max(0, ((from - call.start) / total) * 100)}%`, width: `${Math.max(0.6, Math.min(100, ((to - from) / total) * 100))}%` }} /></span><span class="muted small">{duration(to - from)}</span></div>
      ))}
      <p class="small"><button type="button" class="link" onClick={() => (brush.value = [call.start - total * 0.2, end + total * 0.2])}>Show only this time in the timeline</button></p>
    </div>
  );
}

export interface Difference { at: string; one: Json | undefined; other: Json | undefined }

export function differences(one: Json | undefined, other: Json | undefined, at = "", found: Difference[] = []): Difference[] {
  if (found.length > 500 || write(one) === write(other)) return found;
  const keys = (value: Json | undefined): string[] | undefined => (Array.isArray(value) ? value.map((_, index) => String(index)) : isObject(value) ? Object.keys(value) : undefined);
  const [left, right] = [keys(one), keys(other)];
  if (left && right && Array.isArray(one) === Array.isArray(other)) {
    for (const key of new Set([...left, ...right]))
      differences(own(one as JsonObject, key), own(other as JsonObject, key), `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`, found);
  } else found.push({ at: at || "/", one, other });
  return found;
}

function withoutId(text: string | undefined): Json | undefined {
  const message = parsed(text);
  if (!isObject(message)) return message;
  const { id: _, ...rest } = message;
  return rest;
}

function Differences({ one, other }: { one: Call; other: Call }) {
  const asked = differences(withoutId(one.request), withoutId(other.request));
  const answered = differences(withoutId(one.response), withoutId(other.response));
  const table = (title: string, found: Difference[]) => (
    <div class="block"><div class="block-bar"><span class="block-kind">{title}</span><span class="muted small">{found.length === 0 ? "the same" : count(found.length, "difference")}</span></div>
      {found.length > 0 && <table class="diff"><thead><tr><th scope="col">Pointer</th><th scope="col">Call {one.key}</th><th scope="col">Call {other.key}</th></tr></thead><tbody>{found.slice(0, 200).map((difference) => <tr key={difference.at}><th scope="row"><code>{visible(difference.at)}</code></th><td class="was">{shown(difference.one)}</td><td class="is">{shown(difference.other)}</td></tr>)}</tbody></table>}</div>
  );
  const shown = (value: Json | undefined) => (value === undefined ? "missing" : visible(write(value).slice(0, 600)));
  return (
    <div class="story-part" data-testid="differences">
      <p class="muted small">Compared with call {one.key} at {clock(one.start)} s. Ids are left out. <button type="button" class="link" onClick={() => (compared.value = null)}>End comparison</button></p>
      {table("requests", asked)}{table("responses", answered)}
      <p class="small">Duration: {duration((one.end ?? one.start) - one.start)} and {duration((other.end ?? other.start) - other.start)}</p>
    </div>
  );
}

/** How far the server says that the call has come. */
function Reached({ method, params }: { method: string; params: JsonObject }) {
  frameVersion.value;
  const session = connection.value?.sessions.at(-1)?.id;
  const progress = session === undefined ? undefined : sessions.get(session)?.tracker.pending(method, targetOf(method, params))?.progress;
  if (!progress) return null;
  const { done, total, message } = progress;
  return <span class="progress" data-testid="progress"><progress aria-label="Progress" {...(total === undefined ? {} : { value: done, max: total })} /> {done}{total !== undefined && ` of ${total}`}{message && <span class="muted"> {visible(message.slice(0, 300))}</span>}</span>;
}

export function RunResult({ slot, outputSchema }: { slot: string; outputSchema?: JsonObject }) {
  const last = runs.value.get(slot);
  // The frames may come after the outcome.
  frameVersion.value;
  const [, tick] = useState(0);
  const waiting = last && !last.outcome && !last.refused;
  useEffect(() => {
    if (!waiting) return;
    const timer = setInterval(() => tick((value) => value + 1), 100);
    return () => clearInterval(timer);
  }, [waiting]);
  if (!last) return null;
  if (last.refused) return <p class="note error" role="alert">{last.refused}</p>;
  if (!last.outcome) return <p class="running" role="status"><span class="spinner" /> Waiting for the response, {duration((performance.now() - last.startedAt) * 1000)}<Reached method={last.method} params={last.params} /></p>;
  if (last.outcome.task !== undefined) return <TaskPanel id={last.outcome.task} session={last.outcome.session} />;
  return <Result outcome={received(last.outcome)} method={last.method} outputSchema={outputSchema} repeated={repeatedIn(last.outcome)} />;
}

export { run };
