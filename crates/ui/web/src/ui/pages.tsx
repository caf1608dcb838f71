// The other pages of a server: connecting, overview, logs, check, saved tests.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../lib/api";
import { isObject } from "../lib/calls";
import { read, write } from "../lib/lossless";
import { inSuite, isMasked, maskedStep } from "../lib/secrets";
import { lines, pairs, removed } from "../lib/settings";
import { freeName, isRedacted, serverOf, suite, suiteTest, testNames, USUAL_NAME, word } from "../lib/snippets";
import { connection, currentSession, edited, frameVersion, go, handshake, inputSchemaIn, isFile, jobOf, logLevel, overview, request, selectNew, selected, sessions, setRequestedLevel, startJob, steps, stepsHere, stepsOf, type SessionSteps, type Step, unsaved, toast, trafficOpen, pane, story, brush } from "../lib/store";
import { clock, count, download, duration, rawText, visible } from "../lib/text";
import type { Connection, Diagnostic, Finding, Frame, Json, JsonObject, Spec } from "../lib/types";
import { Authorization, waitsForUser } from "./authorization";
import { Badge, Button, CopyButton, Empty, Icon, Rows, Said, Tabs, type IconName } from "./basics";
import { Markdown, Plain, Problem, Tree } from "./result";
import { ofServer, stepOfCall } from "./story";

/** The words of a command line, as a POSIX shell would take them; nothing is expanded. */
export function words(text: string): string[] | null {
  const found: string[] = [];
  let current: string | null = null;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const symbol = text[at]!;
    if (quote) {
      if (symbol === quote) quote = "";
      else if (symbol === "\\" && quote === '"' && at + 1 < text.length) current = (current ?? "") + text[++at]!;
      else current = (current ?? "") + symbol;
    } else if (symbol === "'" || symbol === '"') {
      quote = symbol;
      current ??= "";
    } else if (symbol === "\\" && at + 1 < text.length) current = (current ?? "") + text[++at]!;
    else if (/\s/.test(symbol)) {
      if (current !== null) found.push(current);
      current = null;
    } else current = (current ?? "") + symbol;
  }
  if (quote) return null;
  if (current !== null) found.push(current);
  return found;
}

export function Connect() {
  const before = overview.value?.connections.find((one) => one.id === edited.value);
  const written = before ? (before.spec.url ?? before.spec.command.map(word).join(" ")) : "";
  const [target, setTarget] = useState(before ? written : (new URLSearchParams(location.search).get("target") ?? ""));
  const spec = before?.spec;
  // Those of a configuration file as well. Values are not known here: a line without one keeps it.
  const [shown] = useState(() => ({ env: [...(before ? serverOf(before).env : []), ...(spec?.env ?? [])], headers: [...(before ? serverOf(before).headers : []), ...(spec?.headers ?? [])] }));
  const [env, setEnv] = useState(lines(shown.env, "="));
  const [headers, setHeaders] = useState(lines(shown.headers, ":"));
  const [cwd, setCwd] = useState(spec?.cwd ?? "");
  const [client, setClient] = useState({ clientId: spec?.clientId ?? "", clientSecret: "", scope: spec?.scope ?? "" });
  const [transport, setTransport] = useState(spec?.transport ?? "auto");
  const [era, setEra] = useState(spec?.era ?? "auto");
  const [more, setMore] = useState(spec !== undefined && (shown.env.length > 0 || shown.headers.length > 0 || leftOut(spec).length > 0 || Boolean(spec.cwd)));
  const [wrong, setWrong] = useState("");
  const isUrl = /^https?:\/\//i.test(target.trim());
  const command = isUrl ? [] : words(target.trim());
  const add = async (spec: JsonObject) => {
    setWrong("");
    try {
      const { id } = await post<{ id: number }>("connections", spec);
      selectNew(id);
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const settings = { env: pairs(env, "="), headers: pairs(headers, ":"), transport, era };
    const changed = () => ({ env: settings.env, headers: settings.headers, withoutEnv: removed(shown.env, settings.env), withoutHeaders: removed(shown.headers, settings.headers), cwd, ...client, ...(transport === (spec?.transport ?? "auto") ? {} : { transport }), ...(era === (spec?.era ?? "auto") ? {} : { era }) });
    // A server of a configuration file stays it until something else is typed.
    if (before && target.trim() === "" && before.spec.server) return void change(before.id, changed());
    if (target.trim() === "") return;
    if (target.trim().startsWith("{")) return void paste(target);
    if (command === null) return setWrong("A quote is not closed.");
    const url = isUrl ? target.trim() : null;
    if (before) return void change(before.id, { ...changed(), ...(target === written ? {} : { target: { command: url && before.spec.url ? before.spec.command : command, url } }) });
    const typed = Object.fromEntries(Object.entries(client).filter(([, value]) => value !== ""));
    void add({ command, url, ...settings, ...typed, ...(cwd ? { cwd } : {}) });
  };
  const change = async (id: number, changes: JsonObject) => {
    setWrong("");
    try {
      await post(`connections/${id}/open`, changes);
      go("overview");
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  const paste = async (text: string) => {
    try {
      const document = JSON.parse(text) as JsonObject;
      const servers = isObject(document.mcpServers) ? document.mcpServers : isObject(document.servers) ? document.servers : { server: document };
      const unclear = Object.entries(servers).find(([, entry]) => !isObject(entry) || (typeof entry.command !== "string" && typeof entry.url !== "string"));
      if (unclear) return setWrong(`The server \`${unclear[0]}\` has neither \`command\` nor \`url\`.`);
      for (const [name, entry] of Object.entries(servers)) {
        if (!isObject(entry)) continue;
        const args = Array.isArray(entry.args) ? entry.args.map(String) : [];
        await add({ name, command: typeof entry.command === "string" ? [entry.command, ...args] : [], url: typeof entry.url === "string" ? entry.url : null, env: isObject(entry.env) ? Object.entries(entry.env).map(([key, value]) => [key, String(value)]) : [], headers: isObject(entry.headers) ? Object.entries(entry.headers).map(([key, value]) => [key, String(value)]) : [] });
      }
    } catch {
      setWrong("This is not valid JSON.");
    }
  };
  const known = before ? [] : (overview.value?.known ?? []);
  // A host with a path or a port is seldom the name of a program.
  const only = command?.length === 1 ? command[0]! : "";
  const address = /^(localhost|[\w-]+(\.[\w-]+)+)(:\d+(\/\S*)?|\/\S*)$/i.test(only) ? `${/^(localhost|127\.)/i.test(only) ? "http" : "https"}://${only}` : undefined;
  return (
    <div class="connect" data-testid="connect">
      <h1>{before ? "Edit the server" : "Connect to a server"}</h1>
      <p class="muted">A command starts a server over stdio, a URL reaches one over HTTP. The settings of another client (<code>mcpServers</code>) can be pasted as JSON.</p>
      <form onSubmit={submit}>
        <label class="visually-hidden" for="target">Command or URL</label>
        <div class="target-line"><Icon name={isUrl ? "radio" : "terminal"} /><input id="target" data-testid="target" class="mono" value={target} placeholder="node server.js   or   https://example.com/mcp" autocomplete="off" spellcheck={false} onInput={(event) => setTarget(event.currentTarget.value)} onPaste={(event) => {
          const text = event.clipboardData?.getData("text") ?? "";
          if (text.trim().startsWith("{")) { event.preventDefault(); void paste(text); }
        }} /><Button kind="primary" type="submit" data-testid="connect-button">Connect</Button>{before && <Button kind="quiet" onClick={() => go("overview")}>Cancel</Button>}</div>
        {command && command.length > 0 && !isUrl && <p class="small muted">Starts <code>{visible(command[0]!)}</code>{command.length > 1 && <> with {count(command.length - 1, "argument")}</>} on this machine, as you.</p>}
        {address && <p class="note" data-testid="taken-as-command">This is taken as a command. For a URL, write the scheme: <button type="button" class="link" onClick={() => setTarget(address)}>{visible(address)}</button></p>}
        {wrong && <p class="note error" role="alert"><Said text={wrong} /></p>}
        {before?.spec.server && target === "" && <p class="small muted">It is <code>{visible(before.spec.server)}</code> of the configuration file, as long as nothing else is typed here.</p>}
        {<button type="button" class="link small" aria-expanded={more} data-testid="more-settings" onClick={() => setMore(!more)}>{more ? "Fewer settings" : "Environment, headers, directory, OAuth client, transport, era"}</button>}
        {more && before && <p class="small muted">Values that were set before are not shown: a line without a value keeps it, and a line that is removed removes it.{spec && leftOut(spec).length > 0 && <> Left out of what the configuration file sets: {leftOut(spec).map((name, index) => <>{index > 0 && ", "}<code>{visible(name)}</code></>)}; a line with the name brings it back.</>}{spec?.server && !before.resolved && <> What the configuration file sets is listed once the file could be read.</>}</p>}
        {more && (
          <div class="more">
            <label>Environment, one NAME=value per line<textarea class="code" rows={3} data-testid="env" value={env} onInput={(event) => setEnv(event.currentTarget.value)} /></label>
            <label>Headers, one Name: value per line<textarea class="code" rows={3} data-testid="headers" value={headers} onInput={(event) => setHeaders(event.currentTarget.value)} /></label>
            <label>Directory<input value={cwd} class="mono" placeholder={before ? (serverOf(before).cwd ?? "") : ""} onInput={(event) => setCwd(event.currentTarget.value)} /></label>
            {(isUrl || (before && serverOf(before).url)) && <>
              <label>OAuth client ID<input value={client.clientId} class="mono" data-testid="client-id" autocomplete="off" placeholder="registered by mcproof" onInput={(event) => setClient({ ...client, clientId: event.currentTarget.value })} /></label>
              <label>Client secret<input value={client.clientSecret} class="mono" type="password" autocomplete="off" placeholder={spec?.clientSecret === "" ? "empty keeps it" : "env:NAME, file:PATH or the secret"} onInput={(event) => setClient({ ...client, clientSecret: event.currentTarget.value })} /></label>
              <label>Scopes<input value={client.scope} class="mono" autocomplete="off" placeholder="those that the server names" onInput={(event) => setClient({ ...client, scope: event.currentTarget.value })} /></label>
            </>}
            <label>Transport<select value={transport} onChange={(event) => setTransport(event.currentTarget.value)}><option value="auto">auto</option><option value="stdio">stdio</option><option value="http">Streamable HTTP</option><option value="sse">HTTP+SSE</option></select></label>
            <label>Era<select value={era} onChange={(event) => setEra(event.currentTarget.value)}><option value="auto">auto</option><option value="legacy">legacy</option><option value="modern">modern</option></select></label>
          </div>
        )}
      </form>
      {known.length > 0 && <><h2>From this directory</h2><div class="cards">{known.map(({ name, file }) => <button type="button" class="card" key={file + name} onClick={() => void add({ server: name })}><strong>{visible(name)}</strong><span class="muted small">{visible(file)}</span></button>)}</div></>}
    </div>
  );
}

/** What the configuration file sets, and the user has removed. */
const leftOut = (spec: Spec): string[] => [...spec.withoutEnv, ...spec.withoutHeaders];

export function OverviewPage() {
  frameVersion.value;
  const at = connection.value!;
  const hello = handshake.value;
  const change = (changes: JsonObject) => void post(`connections/${at.id}/open`, changes).catch((error: Error) => toast(error.message, "error"));
  const busy = at.status === "opening";
  const info = hello?.serverInfo ?? {};
  const { env, headers, cwd } = serverOf(at);
  const names = (what: string, all: string[]) => (all.length > 0 ? [`${what}: ${[...new Set(all)].join(", ")}`] : []);
  const said = [...names("environment", env.map(([name]) => name)), ...names("headers", headers.map(([name]) => name)), ...names("left out of the configuration file", leftOut(at.spec)), ...(cwd ? [`directory: ${cwd}`] : [])];
  return (
    <article class="detail" data-testid="overview" data-status={at.status}>
      <header class="detail-head">
        <div class="detail-title"><h1>{visible(String(info.title ?? info.name ?? at.title))}</h1>{info.version !== undefined && <span class="muted">{visible(String(info.version))}</span>}<StatusBadge connection={at} /></div>
        <p class="uri-line"><code class="uri">{visible([at.spec.url, at.spec.command.join(" ")].filter(Boolean).join("  ←  ") || at.spec.server || at.title)}</code></p>
        {said.length > 0 && <p class="small muted" data-testid="settings">{said.map((text) => visible(text)).join("; ")}</p>}
        <div class="actions">
          {at.status === "recorded" ? null : at.status === "open" ? <><Button icon="again" data-testid="reconnect" onClick={() => change({})}>Reconnect</Button><Button icon="plug" data-testid="disconnect" onClick={() => void post(`connections/${at.id}/close`)}>Disconnect</Button></> : busy ? <Button icon="stop" onClick={() => void post(`connections/${at.id}/close`)}>Stop</Button> : <Button kind="primary" icon="plug" data-testid="reconnect" onClick={() => change({})}>Connect</Button>}
          {at.status !== "recorded" && !busy && <Button icon="wrench" kind="quiet" data-testid="edit-server" onClick={() => { go("connect"); edited.value = at.id; }}>Edit</Button>}
          <Button icon="trash" kind="quiet" data-testid="remove" onClick={() => void post(`connections/${at.id}/remove`)}>Remove</Button>
        </div>
      </header>
      <Authorization key={`authorization ${at.id}`} connection={at} />
      {at.status !== "recorded" && <Doctor key={at.id} id={at.id} open={at.status === "failed"} />}
      {busy && !waitsForUser(at.authorization) && <p class="running" role="status"><span class="spinner" /> Connecting…</p>}
      {at.diagnostic && at.authorization?.state !== "failed" && <Problem diagnostic={at.diagnostic} />}
      {hello && (
        <>
          <dl class="terms">
            <div><dt>Transport</dt><dd>{hello.transport}</dd></div>
            <div><dt>Era</dt><dd>{hello.era}</dd></div>
            <div><dt>Revision</dt><dd>{visible(hello.protocolVersion)}</dd></div>
            <div><dt>Capabilities</dt><dd>{Object.keys(hello.capabilities).length === 0 ? "none" : Object.keys(hello.capabilities).map((name) => <Badge key={name}>{visible(name)}</Badge>)}</dd></div>
          </dl>
          {hello.instructions && <section class="block"><div class="block-bar"><span class="block-kind">instructions</span><span class="grow" /><CopyButton text={() => hello.instructions!} /></div><Markdown text={hello.instructions} /></section>}
          <section class="block"><div class="block-bar"><span class="block-kind">handshake</span></div><Tree value={hello as unknown as JsonObject} open={2} /></section>
        </>
      )}
      {at.status !== "recorded" && (
        <section class="settings"><h2>Connect differently</h2>
          <div class="settings-row">
            <label>Era<select data-testid="era" value={at.spec.era ?? "auto"} onChange={(event) => change({ era: event.currentTarget.value })}><option value="auto">auto</option><option value="legacy">legacy</option><option value="modern">modern</option></select></label>
            <label>Revision<select value={at.spec.revision ?? ""} onChange={(event) => change({ revision: event.currentTarget.value })}><option value="">negotiated</option>{["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"].map((one) => <option key={one} value={one}>{one}</option>)}</select></label>
            {at.spec.url && <label>Transport<select value={at.spec.transport ?? "auto"} onChange={(event) => change({ transport: event.currentTarget.value })}><option value="auto">auto</option><option value="http">Streamable HTTP</option><option value="sse">HTTP+SSE</option></select></label>}
          </div>
          {at.status !== "opening" && (at.authorization || sendsToken(at)) && <div class="actions"><Button icon="shield" data-testid="sign-in-again" onClick={() => change({ signInAnew: true })}>Sign in again</Button><span class="small muted">Discards the stored token of this server, and shows each step of the authorization.</span></div>}
        </section>
      )}
    </article>
  );
}

/** Whether the session began with a token that was stored before. */
function sendsToken(at: Connection): boolean {
  if (at.spec.headers.some(([name]) => name.toLowerCase() === "authorization")) return false;
  let looked = 0;
  for (const frame of sessions.get(at.sessions.at(-1)?.id ?? -1)?.frames.values() ?? []) {
    if (frame.body.kind === "http-request" && frame.body.headers.some(([name]) => name.toLowerCase() === "authorization")) return true;
    if (++looked > 60) return false;
  }
  return false;
}

interface DoctorStep { id: string; title: string; state: "passed" | "failed" | "skipped"; detail?: string; hint?: string; elapsedUs?: number }
interface Examined { diagnostic?: Diagnostic; examination?: { steps: DoctorStep[]; stderr?: string[] } }

/** A connection, step by step: the same as `mcproof doctor TARGET`. */
function Doctor({ id, open }: { id: number; open: boolean }) {
  const { running, done, wrong } = jobOf<Examined>(`doctor ${id}`);
  const start = () => void startJob(`doctor ${id}`, () => post<Examined>(`connections/${id}/doctor`));
  return (
    <section class="doctor" data-testid="doctor" data-status={running ? "running" : done ? "done" : "idle"}>
      <div class="actions"><Button icon="doctor" kind={open && !done ? "primary" : "plain"} data-testid="run-doctor" disabled={running} onClick={start}>{running ? "Diagnosing…" : "Diagnose the connection"}</Button></div>
      {wrong && <p class="note error" role="alert">{visible(wrong)}</p>}
      {done?.diagnostic && <Problem diagnostic={done.diagnostic} />}
      {done?.examination && (
        <ol class="doctor-steps">
          {done.examination.steps.map((step) => (
            <li key={step.id} class={step.state} data-testid={`step-${step.id}`} data-status={step.state}>
              <Icon name={step.state === "passed" ? "check" : step.state === "failed" ? "alert" : "dot"} size={15} /><strong>{step.title}</strong>
              <span>{step.state === "skipped" ? <span class="muted">not reached</span> : <Said text={step.detail ?? ""} />}{step.hint && <p class="hint"><span>What to do</span><Said text={step.hint} /></p>}</span>
              <span class="muted small">{step.state === "passed" ? duration(step.elapsedUs) : ""}</span>
            </li>
          ))}
        </ol>
      )}
      {done?.examination?.stderr && <><h3>stderr</h3><Plain text={done.examination.stderr.join("\n")} /></>}
    </section>
  );
}

export function StatusBadge({ connection: at }: { connection: Connection }) {
  const kinds = { open: "ok", opening: "info", failed: "error", ended: "error", closed: "plain", recorded: "info" } as const;
  const texts = { open: "connected", opening: "connecting", failed: "not connected", ended: "ended", closed: "disconnected", recorded: "recorded" };
  return <Badge kind={kinds[at.status]}>{texts[at.status]}</Badge>;
}

export function Logs() {
  frameVersion.value;
  const data = currentSession.value;
  const [tab, setTab] = useState<"all" | "log" | "stderr">("all");
  const [needle, setNeedle] = useState("");
  type Line = { at: number; level: string; text: string; key: string; call?: number };
  const lines: Line[] = [];
  if (data && tab !== "stderr")
    for (const call of data.logs) {
      const message = read(call.request) as JsonObject;
      const params = isObject(message.params) ? message.params : {};
      const text = typeof params.data === "string" ? params.data : write(params.data ?? null);
      lines.push({ at: call.start, level: String(params.level ?? "info"), text: params.logger ? `${String(params.logger)}: ${text}` : text, key: `c${call.key}`, call: call.key });
    }
  if (data && tab !== "log") for (const frame of data.stderr as Frame[]) if (frame.body.kind === "stderr" || frame.body.kind === "stdout") lines.push({ at: frame.at_us, level: frame.body.kind, text: rawText(frame.body.bytes), key: `f${frame.id}` });
  lines.sort((one, other) => one.at - other.at);
  const found = needle ? lines.filter((line) => line.text.toLowerCase().includes(needle.toLowerCase())) : lines;
  const modern = handshake.value?.era === "modern";
  const level = logLevel(data, modern ? "modern" : "legacy");
  const setLevel = async (level: string) => {
    if (modern) return void (data && setRequestedLevel(data.id, level));
    const outcome = await request(connection.value!.id, "logging/setLevel", { level }).catch((error: Error) => ({ error, failure: undefined }));
    const wrong = outcome.error?.message ?? outcome.failure?.message;
    // What is shown is what the server has accepted.
    frameVersion.value++;
    if (wrong !== undefined) toast(wrong, "error");
  };
  const canSet = handshake.value && "logging" in handshake.value.capabilities && connection.value?.status === "open" && data?.id === connection.value.sessions.at(-1)?.id;
  return (
    <div class="logs" data-testid="logs">
      <h1 class="visually-hidden">Logs</h1>
      <div class="page-bar">
        <Tabs label="Kind of log" tabs={[["all", "All"], ["log", "Messages"], ["stderr", "stderr"]]} value={tab} onChange={setTab} />
        <input type="search" placeholder="Search" aria-label="Search the logs" value={needle} onInput={(event) => setNeedle(event.currentTarget.value)} />
        {canSet && <label class="inline">Level<select data-testid="log-level" value={level ?? ""} onChange={(event) => void setLevel(event.currentTarget.value)}>{modern ? <option value="">none</option> : level === undefined && <option value="">not set</option>}{["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"].map((level) => <option key={level} value={level}>{level}</option>)}</select></label>}
        <CopyButton text={() => found.map((line) => `${clock(line.at)} ${line.level} ${line.text}`).join("\n")} label="Copy the logs" />
      </div>
      {canSet && modern && <p class="small muted pad">In this era each request says which log messages it wants: the level is sent with each one from now on, but for lists.</p>}
      {found.length === 0 ? <Empty icon="terminal" title="Nothing logged">Log messages of the server and lines on its stderr appear here.</Empty> : <Rows items={found} height={24} label="Log" testid="log" follow onMove={(index) => { const call = found[index]!.call; if (call && data) story.value = { session: data.id, key: call }; }} row={(line) => <div class={`log level-${line.level}`}><span class="call-time">{clock(line.at)}</span><span class="log-level">{visible(line.level)}</span><span class="log-text">{visible(line.text)}</span></div>} />}
    </div>
  );
}

interface Report { outcome: "report"; conclusion: string; pages: JsonObject[]; report: { rules: { rule: string; area: string; requirement: string; judged: { verdict: string; findings?: Finding[]; why?: string } }[]; gaps?: { message: string; hint: string }[]; conversations: { name: string; transport: string; transcript: { frames: Frame[] } }[] } }
type Checked = Report | { outcome: "unreachable"; diagnostic: Diagnostic };

export function CheckPage() {
  const at = connection.value!;
  const { running, done, wrong } = jobOf<Checked>(`check ${at.id}`);
  const start = () => void startJob(`check ${at.id}`, () => post<Checked>(`connections/${at.id}/check`));
  const report = done?.outcome === "report" ? done : undefined;
  const rules = report?.report.rules ?? [];
  const found = rules.flatMap((rule) => (rule.judged.findings ?? []).map((finding) => ({ rule, finding })));
  const told = found.filter(({ finding }) => !finding.cause);
  const order = { error: 0, warning: 1, note: 2 };
  told.sort((one, other) => order[one.finding.severity] - order[other.finding.severity]);
  const passed = rules.filter((rule) => rule.judged.verdict === "pass").length;
  const untested = rules.filter((rule) => rule.judged.verdict === "untestable").length;
  return (
    <article class="detail" data-testid="check" data-status={running ? "running" : report ? report.conclusion : "idle"}>
      <header class="detail-head">
        <div class="detail-title"><h1>Check</h1>{report && <Badge kind={report.conclusion === "passed" ? "ok" : report.conclusion === "failed" ? "error" : "warning"}>{report.conclusion}</Badge>}</div>
        <p class="muted">Connects as every kind of client, in sessions of its own, and judges the traffic by the rules of the specification. Only tools that declare themselves read-only are called.</p>
        <div class="actions"><Button kind="primary" icon="shield" data-testid="run-check" disabled={running || at.status === "recorded"} onClick={start}>{running ? "Checking…" : report ? "Check again" : "Run the check"}</Button></div>
      </header>
      {running && <p class="running" role="status"><span class="spinner" /> This takes up to a minute. It goes on while you look at something else.</p>}
      {wrong && <p class="note error" role="alert">{visible(wrong)}</p>}
      {done?.outcome === "unreachable" && <Problem diagnostic={done.diagnostic} />}
      {report && (
        <>
          <p class="facts"><span>{count(told.length, "finding")}</span><span>{passed} rules passed</span><span>{untested} not tested</span><span>{count(report.report.conversations.length, "conversation")}</span></p>
          {(report.report.gaps ?? []).map((gap) => <p class="note warning" key={gap.message}><strong><Said text={gap.message} /></strong> <Said text={gap.hint} /></p>)}
          {told.length === 0 && report.conclusion === "passed" && <Empty icon="shield" title="Nothing found">Every rule that applies was kept in what was tried.</Empty>}
          {told.map(({ rule, finding }, index) => <FindingCard key={index} rule={rule} finding={finding} report={report} />)}
        </>
      )}
    </article>
  );
}

function FindingCard({ rule, finding, report }: { rule: Report["report"]["rules"][number]; finding: Finding; report: Report }) {
  const [open, setOpen] = useState(false);
  const page = report.pages.find((page) => page.id === rule.rule);
  const talk = report.report.conversations[finding.conversation];
  const frames = talk?.transcript.frames.filter((frame) => finding.frames.includes(frame.id)) ?? [];
  return (
    <section class={`finding ${finding.severity}`} data-testid="finding" data-rule={rule.rule}>
      <button type="button" class="finding-head" aria-expanded={open} onClick={() => setOpen(!open)}><Icon name={open ? "down" : "right"} size={14} /><Badge kind={finding.severity === "note" ? "info" : finding.severity}>{finding.severity}</Badge><strong><Said text={finding.message} /></strong></button>
      {open && (
        <div class="finding-body">
          <p><Said text={rule.requirement} /> <span class="muted">({visible(finding.level)})</span></p>
          <p class="hint"><span>What to do</span><Said text={finding.remedy} /></p>
          {finding.defect && <p class="note warning">Known defect of {visible(finding.defect.sdk.name)} {visible(finding.defect.sdk.version)}: {visible(finding.defect.advice)}</p>}
          {typeof page?.why === "string" && <p class="muted"><Said text={page.why} /></p>}
          {frames.map((frame) => <Plain key={frame.id} text={`#${frame.id} ${clock(frame.at_us)} ${frame.body.kind}\n${"bytes" in frame.body ? rawText(frame.body.bytes) : frame.body.kind === "http-request" ? `${frame.body.method} ${frame.body.url}\n${rawText(frame.body.body)}` : frame.body.kind === "http-response" ? `HTTP ${frame.body.status}\n${frame.body.headers.map(([name, value]) => `${name}: ${value}`).join("\n")}` : frame.body.kind === "note" ? frame.body.text : ""}`} />)}
          <p class="small muted"><code>{rule.rule}</code>{talk && <> in the conversation <code>{talk.name}</code> over {talk.transport}</>} <a href={/^https:\/\//.test(finding.source) ? finding.source : undefined} target="_blank" rel="noopener noreferrer">specification</a></p>
        </div>
      )}
    </section>
  );
}

/** The first of many lines, and how many more there are. */
const some = (lines: string[]) => (lines.length > 20 ? [...lines.slice(0, 20), `${lines.length - 20} more`] : lines);

export function Saved() {
  const at = connection.value;
  const all = stepsHere.value;
  const others = steps.value.filter((step) => !all.includes(step));
  const data = currentSession.value;
  const [told, setTold] = useState<string[]>([]);
  const add = (all: Step[]) => {
    steps.value = [...steps.value, ...all.map((step) => (at ? ofServer(at, step) : step))];
    toast(`${count(all.length, "step")} added`);
  };
  const takeAll = async () => {
    if (!data) return;
    if (isFile || data.id < 0) {
      // Without the program, each call stands for itself.
      const calls = data.tracker.calls.filter((call) => !call.app && call.kind === "request" && call.direction === "to-server" && ["tools/call", "resources/read", "prompts/get"].includes(call.method) && call.response !== undefined);
      setTold(["Values that change with each run are kept as they are: `mcproof trace export --suite` saves and matches them."]);
      return add(calls.map(stepOfCall));
    }
    try {
      const found = await get<SessionSteps>(`sessions/${data.id}/steps`);
      add(stepsOf({ ...found, steps: found.steps.map((step) => maskedStep(step, typeof step.call === "string" ? inputSchemaIn(data.id, step.call) : undefined)) }));
      setTold([
        ...Object.entries(found.leftOut).map(([why, number]) => `Left out ${count(number, "request")}: ${why}`),
        ...some(found.stale).map((step) => `Sent as recorded, although an earlier response brought it: ${step}`),
        ...some(found.uncompared).map((step) => `Compared in part: ${step}`),
      ]);
    } catch (error) {
      toast((error as Error).message, "error");
    }
  };
  const missing = unsaved(all);
  const forget = () => (steps.value = others);
  const text = at && all.length > 0 ? suite(at, all) : "";
  return (
    <article class="detail" data-testid="saved">
      <header class="detail-head"><div class="detail-title"><h1>Tests</h1><Badge>{count(all.length, "step")}</Badge></div><p class="muted">Calls that were kept, as steps of a suite that <code>mcproof test</code> runs. Values of variables and headers stay out of it.</p>
        <div class="actions"><Button icon="plus" data-testid="take-all" disabled={!data} onClick={() => void takeAll()}>Add all calls of this session</Button>{all.length > 0 && <><Button icon="download" onClick={() => download("session.mcproof.yaml", text, "text/yaml")}>Download suite</Button><Button kind="quiet" icon="trash" onClick={forget}>Remove all</Button></>}</div></header>
      {others.length > 0 && <p class="note" data-testid="other-steps">{count(others.length, "step")} of other servers {others.length === 1 ? "is" : "are"} kept as well: {[...new Set(others.map((step) => step.serverTitle ?? "unknown"))].map(visible).join(", ")}. A suite has the steps of one server. <button type="button" class="link" onClick={() => (steps.value = steps.value.filter((step) => !others.includes(step)))}>Remove those</button></p>}
      {told.length > 0 && <div class="note" data-testid="taken"><ul>{told.map((line) => <li key={line}><Said text={line} /></li>)}</ul><button type="button" class="link small" onClick={() => setTold([])}>Close</button></div>}
      {missing.length > 0 && <p class="note error" role="alert" data-testid="unsaved">A step that was removed saved {missing.map((name, index) => <>{index > 0 && ", "}<code key={name}>{visible(name)}</code></>)}, which other steps use. Remove those as well, or add all calls again.</p>}
      {all.length === 0 ? <Empty icon="flask" title="No steps yet">Call a tool, then choose Keep.</Empty> : (
        <>
          {all.map((step, index) => <div class="step" key={index}><Badge kind={step.failed ? "error" : "plain"}>{step.method}</Badge><span class="clip">{visible(step.title)}</span><code class="clip muted">{visible(inSuite(write(step.params.arguments ?? step.params)))}</code><span class="grow" /><Button kind="quiet" icon="close" label={`Remove step ${index + 1}`} onClick={() => (steps.value = steps.value.filter((one) => one !== step))} /></div>)}
          {all.some((step) => isRedacted(step.params) || isRedacted(step.payload) || isRedacted(step.result) || isRedacted(step.written)) && <p class="note" data-testid="redacted">Something in these steps was redacted. A result may have any text there; an argument has to be put in by hand.</p>}
          {all.some((step) => isMasked(step.params) || isMasked(step.written) || isMasked((step.answers ?? null) as Json)) && <p class="note" data-testid="masked">Passwords are not kept: the test takes them from the environment, as <code>{"\${env.…}"}</code> says.</p>}
          {at && !isFile && <SaveAs whole={(name, file) => suite(at, all, name, file)} test={(name) => suiteTest(at, all, name)} done={forget} />}
          {at && <section class="block"><div class="block-bar"><span class="block-kind">suite</span><span class="grow" /><CopyButton text={() => text} label="Copy suite" /></div><Plain text={text} /></section>}
        </>
      )}
    </article>
  );
}

/** Saves the steps as one test to a suite of the folder where mcproof was started. */
function SaveAs({ whole, test, done }: { whole: (name: string, file: string) => string; test: (name: string) => string; done: () => void }) {
  const [known, setKnown] = useState<string[]>([]);
  const [file, setFile] = useState("");
  const [name, setName] = useState(USUAL_NAME);
  const [wrong, setWrong] = useState("");
  useEffect(() => void get<{ suites: string[] }>("suites").then(({ suites }) => { setKnown(suites); setFile((file) => file || suites[0] || "inspector.mcproof.yaml"); }).catch(() => setFile("inspector.mcproof.yaml")), []);
  const [taken, setTaken] = useState<{ file: string; names: string[] }>({ file: "", names: [] });
  const chosen = file.trim();
  useEffect(() => {
    if (!known.includes(chosen)) return;
    let current = true;
    void get<{ text: string }>(`suites/text?file=${encodeURIComponent(chosen)}`).then(({ text }) => {
      if (!current) return;
      const names = testNames(text);
      setTaken({ file: chosen, names });
      // The name that nobody has typed gives way.
      setName((name) => (name === USUAL_NAME ? freeName(name, names) : name));
    }).catch(() => undefined);
    return () => { current = false; };
  }, [chosen, known]);
  const names = taken.file === chosen ? taken.names : [];
  const isTaken = names.includes(name);
  // The file whose server is another one: the user may insist.
  const [other, setOther] = useState<string | null>(null);
  const save = async (event: Event, anyway = false) => {
    event.preventDefault();
    if (isTaken) return;
    setWrong("");
    setOther(null);
    try {
      const saved = await post<{ file: string; isNew: boolean } | { refused: string; mayInsist: boolean }>("suites", { file: chosen, whole: whole(name, chosen), test: test(name), anyway });
      if ("refused" in saved) {
        setWrong(saved.refused);
        setOther(saved.mayInsist ? chosen : null);
        return;
      }
      toast(`${saved.isNew ? "Created" : "Appended to"} ${saved.file}: run \`mcproof test ${saved.file}\``);
      done();
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <form class="save-as" data-testid="save-as" onSubmit={(event) => void save(event)}>
      <label class="stacked">Name of the test<input value={name} required data-testid="save-name" onInput={(event) => setName(event.currentTarget.value)} /></label>
      <label class="stacked"><span>Suite, from the folder of <code>mcproof ui</code></span><input value={file} required list="suites" spellcheck={false} data-testid="save-file" onInput={(event) => setFile(event.currentTarget.value)} /></label>
      <datalist id="suites">{known.map((one) => <option key={one} value={one} />)}</datalist>
      {isTaken && <p class="note error" role="alert" data-testid="name-taken">The suite has a test of this name. <button type="button" class="link" onClick={() => setName(freeName(name, names))}>Name it “{visible(freeName(name, names))}”</button></p>}
      <Button kind="primary" icon="plus" type="submit" data-testid="save-suite" disabled={isTaken}>{known.includes(chosen) ? "Append to the suite" : "Create the suite"}</Button>
      {wrong && <p class="note error" role="alert" data-testid="save-wrong"><Said text={wrong} /></p>}
      {other !== null && other === chosen && <Button kind="danger" icon="plus" data-testid="save-anyway" onClick={(event) => void save(event, true)}>Append them anyway</Button>}
    </form>
  );
}

export interface NavEntry { view: "overview" | "tools" | "prompts" | "resources" | "logs" | "answers" | "check" | "compare" | "saved"; text: string; icon: IconName; count?: number }
export { pane, trafficOpen, brush, selected };
