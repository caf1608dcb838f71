import { Component, type ComponentChildren } from "preact";
import { useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { addressOf, post } from "../lib/api";
import { askedDuring } from "../lib/answers";
import { isObject, type Call } from "../lib/calls";
import { sidesText } from "../lib/compare";
import { initial, resolve, secretsIn } from "../lib/schema";
import { hasTasks } from "../lib/tasks";
import {
  catalog, compared, connection, currentSession, edited, frameVersion, go, handshake, isFile, isNarrow, item, link, openTest, overview, paletteOpen, pane, select, selected, sessions, shownSession, story, tell, theme, toast, toasts, trafficOpen, trafficWidth, view, stepsHere, testSession, testSessions, type SessionData, type View,
} from "../lib/store";
import { copy, visible } from "../lib/text";
import type { Ask, Connection, Json, JsonObject } from "../lib/types";
import { waitsForUser } from "./authorization";
import { AnswersPage } from "./answers";
import { Badge, Button, Empty, Icon, Said, type IconName } from "./basics";
import { ComparePage, usualSides } from "./compare";
import { Explore, SideList } from "./explore";
import { SchemaForm } from "./form";
import { CheckPage, Connect, Logs, OverviewPage, Saved } from "./pages";
import { Block } from "./result";
import { Story } from "./story";
import { TasksPage } from "./tasks";
import { TestPage, TestsSide } from "./tests";
import { shareMenu, Traffic, TrafficHeader } from "./traffic";

export function App() {
  if (link.value === "denied") return <Empty icon="shield" title="This page has no token">Open the address that <code>mcproof ui</code> printed, with everything after the <code>#</code>. Each start has a new one.</Empty>;
  // As it stands in the page already.
  if (!overview.value) return <div class="app without-side"><header class="top"><span class="brand"><span class="brand-name">mcproof</span></span></header>{link.value === "lost" && <p class="lost" role="status">mcproof does not answer. Is it still running?</p>}</div>;
  if (isFile && overview.value.connections.length === 0) return <Empty icon="activity" title="No session was recorded">The trace has no frames.</Empty>;
  const tests = overview.value.tests;
  const none = !tests && (overview.value.connections.length === 0 || view.value === "connect");
  // The one pane that a narrow window shows is what the page is about.
  const whole = (name: "side" | "traffic") => (isNarrow.value && pane.value === name ? "main" : undefined);
  return (
    <div class={`app ${none ? "without-side" : ""} ${trafficOpen.value && !none ? "with-traffic" : ""} pane-${pane.value}`} style={{ "--traffic": `${trafficWidth.value}px` }}>
      <TopBar />
      {link.value === "lost" && <p class="lost" role="alert">The connection to mcproof is lost. Trying again…</p>}
      {none ? <main class="main" id="main" tabIndex={-1}><Connect key={edited.value} /></main> : (
        <>
          {tests ? <div class="side tests-side" role={whole("side") ?? "navigation"} aria-label="Tests"><TestsSide /></div> : <div class="side" role={whole("side") ?? "navigation"} aria-label="What the server offers">{whole("side") && <h1 class="visually-hidden">{view.value}</h1>}<Nav /><SideList /></div>}
          <main class="main" id="main" tabIndex={-1}><Guard at={`${view.value} ${item.value[view.value] ?? ""} ${story.value?.key ?? ""} ${selected.value}`}><Main /></Guard></main>
          {trafficOpen.value && <div class="traffic-pane" role={whole("traffic") ?? "complementary"} aria-label="Traffic"><Grip /><TrafficHeader onClose={hideTraffic} /><Traffic /></div>}
          <PaneSwitch />
        </>
      )}
      {overview.value.asks.length > 0 ? <Tray asks={overview.value.asks} /> : <SignInTray />}
      {paletteOpen.value && <Palette />}
      <div class="toasts" role="status" aria-live="polite">{toasts.value.map((toast) => <p class={`toast ${toast.kind}`} key={toast.id}><Said text={toast.text} /></p>)}</div>
    </div>
  );
}

/** A page that cannot be drawn takes no other with it. */
class Guard extends Component<{ at: string; children: ComponentChildren }, { failed?: string }> {
  state: { failed?: string } = {};

  componentDidCatch(error: unknown) {
    this.setState({ failed: String((error as Error)?.message ?? error) });
  }

  componentDidUpdate(before: { at: string }) {
    if (before.at !== this.props.at && this.state.failed !== undefined) this.setState({ failed: undefined });
  }

  render() {
    return this.state.failed === undefined ? this.props.children : <Empty icon="alert" title="This cannot be shown">{visible(this.state.failed)}. The traffic has what was sent and received.</Empty>;
  }
}

function Main() {
  if (story.value) return <Story />;
  if (overview.value!.tests) return <TestPage />;
  switch (view.value) {
    case "tools":
    case "prompts":
    case "resources": return <Explore />;
    case "tasks": return <TasksPage />;
    case "logs": return <Logs />;
    case "answers": return <AnswersPage key={selected.value} />;
    case "compare": return <ComparePage />;
    case "check": return <CheckPage key={selected.value} />;
    case "saved": return <Saved />;
    default: return <OverviewPage />;
  }
}

function TopBar() {
  const themes = { auto: "light", light: "dark", dark: "auto" } as const;
  const icons = { auto: "auto", light: "sun", dark: "moon" } as const;
  return (
    <header class="top">
      <span class="brand"><span class="mark" aria-hidden="true"><Icon name="check" size={13} /></span><span class="brand-name">mcproof</span></span>
      <div class="servers" role="group" aria-label="Servers">
        {overview.value!.tests && testSessions.value.length > 1 && testSessions.value.map((one, index) => <button type="button" key={one.id} class="server" aria-pressed={index === testSession.value} onClick={() => { testSession.value = index; story.value = null; }}><span class="clip">{visible(one.title)}</span></button>)}
        {overview.value!.tests ? null : overview.value!.connections.map((one) => (
          <button type="button" key={one.id} class="server" aria-pressed={one.id === selected.value && view.value !== "connect"} data-testid="server" data-status={one.status} onClick={() => select(one.id)}>
            <span class={`status-dot ${one.status}`} aria-hidden="true" /><span class="clip">{visible(tabName(one))}</span><span class="visually-hidden">, {one.status}</span>
          </button>
        ))}
        {!isFile && !overview.value!.tests && <Button kind="quiet" icon="plus" label="Connect to another server" data-testid="add-server" onClick={() => go("connect")} />}
      </div>
      <span class="grow" />
      <button type="button" class="search-button" onClick={() => (paletteOpen.value = true)} aria-keyshortcuts="Control+K" title="Search everything" data-testid="search"><Icon name="search" size={14} /><span>Search</span><kbd>Ctrl K</kbd></button>
      {!trafficOpen.value && <Button kind="quiet" icon="panel" label="Show traffic" data-testid="show-traffic" onClick={showTraffic} />}
      <Button kind="quiet" icon={icons[theme.value]} label={`Theme: ${theme.value}`} data-testid="theme" onClick={() => (theme.value = themes[theme.value])} />
    </header>
  );
}

/** As the user has named it; otherwise as it names itself, with what tells it from others of that name. */
function tabName(one: Connection): string {
  if (one.spec.name || one.spec.server) return one.title;
  const own = (other: Connection) => String(other.sessions.at(-1)?.handshake?.serverInfo?.name ?? other.title);
  const alike = overview.value!.connections.filter((other) => !other.spec.name && !other.spec.server && own(other) === own(one));
  return alike.length > 1 && own(one) !== one.title ? `${own(one)}: ${one.title}` : own(one);
}

function Nav() {
  const known = catalog.value;
  frameVersion.value;
  const declared = handshake.value?.capabilities ?? {};
  const logs = (currentSession.value?.logs.length ?? 0) + (currentSession.value?.stderr.length ?? 0);
  const entries: { view: View; text: string; icon: IconName; count?: number; shown: boolean }[] = [
    { view: "overview", text: "Overview", icon: "info", shown: true },
    { view: "tools", text: "Tools", icon: "wrench", count: known?.tools.items.length, shown: "tools" in declared },
    { view: "prompts", text: "Prompts", icon: "message", count: known?.prompts.items.length, shown: "prompts" in declared },
    { view: "resources", text: "Resources", icon: "file", count: (known?.resources.items.length ?? 0) + (known?.templates.items.length ?? 0), shown: "resources" in declared },
    { view: "tasks", text: "Tasks", icon: "list", count: currentSession.value?.tracker.tasks.all.size || undefined, shown: hasTasks(handshake.value) || (currentSession.value?.tracker.tasks.all.size ?? 0) > 0 },
    { view: "logs", text: "Logs", icon: "terminal", count: logs, shown: true },
    { view: "answers", text: "Answers", icon: "bell", count: Object.keys(connection.value?.policy?.answers ?? {}).length || undefined, shown: !isFile && connection.value?.status !== "recorded" },
    { view: "check", text: "Check", icon: "shield", shown: connection.value?.status !== "recorded" },
    { view: "compare", text: "Compare", icon: "compare", shown: !isFile },
    { view: "saved", text: "Tests", icon: "flask", count: stepsHere.value.length || undefined, shown: true },
  ];
  return (
    <div class="nav">
      {entries.filter((entry) => entry.shown).map((entry) => (
        <button type="button" key={entry.view} data-testid={`nav-${entry.view}`} aria-current={view.value === entry.view ? "page" : undefined} onClick={() => { go(entry.view); if (["tools", "prompts", "resources", "tasks"].includes(entry.view) && innerWidth < 720) pane.value = "side"; }}>
          <Icon name={entry.icon} size={15} /><span>{entry.text}</span><span class="grow" />{entry.count !== undefined && <span class="nav-count">{entry.count}</span>}
        </button>
      ))}
    </div>
  );
}

/** In a narrow window it fills the page. */
function showTraffic() {
  trafficOpen.value = true;
  pane.value = "traffic";
}

function hideTraffic() {
  trafficOpen.value = false;
  if (pane.value === "traffic") pane.value = "main";
}

function PaneSwitch() {
  return (
    <nav class="pane-switch" aria-label="Part of the page">
      {([["side", "Explore", "boxes"], ["main", "Detail", "file"], ["traffic", "Traffic", "activity"]] as const).map(([name, text, icon]) => (
        <button type="button" key={name} aria-pressed={pane.value === name} data-testid={`pane-${name}`} onClick={() => { if (name === "traffic") showTraffic(); else pane.value = name; }}><Icon name={icon} /><span>{text}</span></button>
      ))}
    </nav>
  );
}

function Grip() {
  const [drag, setDrag] = useState<number | null>(null);
  const bound = (width: number) => Math.round(Math.min(Math.max(width, 320), Math.max(360, innerWidth - 640)));
  return (
    <div class="grip" role="separator" aria-orientation="vertical" aria-label="Width of the traffic" aria-valuenow={trafficWidth.value} aria-valuemin={320} aria-valuemax={2000} tabIndex={0}
      onKeyDown={(event) => { const step = event.key === "ArrowLeft" ? 24 : event.key === "ArrowRight" ? -24 : 0; if (step) trafficWidth.value = bound(trafficWidth.value + step); }}
      onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); setDrag(event.clientX + trafficWidth.value); }}
      onPointerMove={(event) => drag !== null && (trafficWidth.value = bound(drag - event.clientX))}
      onPointerUp={() => setDrag(null)} />
  );
}

function Tray({ asks }: { asks: Ask[] }) {
  const [at, setAt] = useState(0);
  const ask = asks[Math.min(at, asks.length - 1)]!;
  // Who asks is said before anything that the server chooses: a user answers one server otherwise than another.
  const owner = overview.value!.connections.find((one) => one.id === ask.connection);
  frameVersion.value;
  const data = sessions.get(ask.session);
  const during = data && askedDuring(data.tracker.calls, ask, data.tracker.tasks.all.values());
  return (
    <section class="tray" aria-label="Questions of servers" data-testid="tray">
      <header><Icon name="bell" size={15} /><strong class="clip" data-testid="asks">{owner ? visible(tabName(owner)) : "A server"} asks</strong><span class="grow" /><Button kind="quiet" icon="wrench" label="Answer by a policy" data-testid="to-policies" onClick={() => { select(ask.connection); go("answers"); }} />{asks.length > 1 && <><Button kind="quiet" label="Previous question" icon="out" onClick={() => setAt((at + asks.length - 1) % asks.length)} /><span class="small muted">{Math.min(at, asks.length - 1) + 1} of {asks.length} that wait</span><Button kind="quiet" label="Next question" icon="in" onClick={() => setAt((at + 1) % asks.length)} /></>}</header>
      {(during || (owner && tabName(owner) !== owner.title)) && <p class="small muted tray-asker" data-testid="asker">{owner && tabName(owner) !== owner.title && <code>{visible(owner.title)}</code>}{during && <> during <button type="button" class="link" onClick={() => { select(ask.connection); tell(during); }}>{visible(`${during.method} ${during.target ?? ""}`)}</button></>}</p>}
      {ask.method === "elicitation/create" ? <Elicitation key={ask.id} ask={ask} /> : <Sampling key={ask.id} ask={ask} />}
    </section>
  );
}

/** A server that requires authorization while the user looks at something else. */
function SignInTray() {
  const waits = overview.value!.connections.find((one) => waitsForUser(one.authorization));
  if (!waits || (waits.id === selected.value && view.value === "overview" && !story.value)) return null;
  return (
    <section class="tray" aria-label="Authorization" data-testid="sign-in-tray">
      <header><Icon name="shield" size={15} /><strong>{visible(waits.title)} requires authorization</strong></header>
      <div class="actions"><Button kind="primary" onClick={() => { select(waits.id); go("overview"); }}>Show the steps</Button></div>
    </section>
  );
}

const answer = (ask: Ask, body: JsonObject) => post(`asks/${ask.id}`, body).catch((error: Error) => toast(error.message, "error"));

function Elicitation({ ask }: { ask: Ask }) {
  const schema = useMemo(() => (isObject(ask.params.requestedSchema) ? ask.params.requestedSchema : {}), [ask]);
  const begun = initial(resolve(schema, schema), schema) ?? {};
  const [value, setValue] = useState<Json>(isObject(begun) ? { ...begun, ...ask.unfinished?.content } : begun);
  const [valid, setValid] = useState(true);
  const url = ask.params.mode === "url" && typeof ask.params.url === "string" ? ask.params.url : undefined;
  return (
    <>
      <p class="tray-message">{visible(String(ask.params.message ?? ""))}</p>
      {ask.unfinished && <p class="note" data-testid="unfinished">The policy has no value for {ask.unfinished.missing.slice(0, 5).map((name, index) => <>{index > 0 && ", "}<code key={name}>{visible(name)}</code></>)}, which the form requires.</p>}
      {url ? <p class="note">It wants you to visit <code class="uri">{visible(url)}</code>{/^https?:\/\//i.test(url) && <> <a href={url} target="_blank" rel="noopener noreferrer nofollow">open</a></>}</p> : <SchemaForm schema={schema} value={value} onChange={setValue} onValid={setValid} testid="elicitation" />}
      <div class="actions"><Button kind="primary" data-testid="accept" disabled={!valid} onClick={() => void answer(ask, url ? { result: { action: "accept" } } : { result: { action: "accept", content: value }, secrets: secretsIn(value, schema) })}>Accept</Button><Button data-testid="decline" onClick={() => void answer(ask, { result: { action: "decline" } })}>Decline</Button><Button kind="quiet" onClick={() => void answer(ask, { result: { action: "cancel" } })}>Cancel</Button></div>
    </>
  );
}

function Sampling({ ask }: { ask: Ask }) {
  const [text, setText] = useState("");
  const [model, setModel] = useState("mcproof");
  const [stopReason, setStopReason] = useState("endTurn");
  const stopReasons = useId();
  const messages = Array.isArray(ask.params.messages) ? ask.params.messages.filter(isObject) : [];
  return (
    <>
      {typeof ask.params.systemPrompt === "string" && <p class="small muted">{visible(ask.params.systemPrompt)}</p>}
      <div class="tray-scroll">{messages.map((message, index) => <div class="speech" key={index}><Badge>{visible(String(message.role))}</Badge>{(Array.isArray(message.content) ? message.content : [message.content ?? null]).map((block, at) => <Block key={at} block={block} />)}</div>)}</div>
      <label class="stacked">Answer as the model<textarea rows={3} data-testid="sampling-text" value={text} onInput={(event) => setText(event.currentTarget.value)} /></label>
      <div class="settings-row">
        <label>Model<input value={model} data-testid="sampling-model" onInput={(event) => setModel(event.currentTarget.value)} /></label>
        <label>Stop reason<input value={stopReason} list={stopReasons} data-testid="sampling-stop" onInput={(event) => setStopReason(event.currentTarget.value)} /></label>
        <datalist id={stopReasons}>{["endTurn", "stopSequence", "maxTokens", "toolUse"].map((one) => <option key={one} value={one} />)}</datalist>
      </div>
      <div class="actions"><Button kind="primary" data-testid="accept" onClick={() => void answer(ask, { result: { role: "assistant", content: { type: "text", text }, model, ...(stopReason === "" ? {} : { stopReason }) } })}>Answer</Button><Button data-testid="decline" onClick={() => void answer(ask, { error: { code: -1, message: "user rejected sampling request" } })}>Reject</Button></div>
    </>
  );
}

interface Command { text: string; about: string; icon: IconName; run: () => void }

/** Calls beside each other: two of one tool, also of two servers, or the one that is shown and the one before it. */
function comparisons(): Command[] {
  const beside = (one: Call, other: Call, text: string, about: string): Command => ({ text, about: `compare  ${about}`, icon: "compare", run: () => {
    compared.value = { session: one.session, key: one.key };
    tell(other);
  } });
  const found: Command[] = [];
  const of = (session: SessionData | undefined, method: string, target: string | undefined, before = Infinity) =>
    session?.tracker.calls.findLast((call) => call.kind === "request" && call.direction === "to-server" && !call.app && call.end !== undefined && call.method === method && call.target === target && call.key < before);
  const at = story.value;
  const methods = { tools: "tools/call", prompts: "prompts/get", resources: "resources/read" } as const;
  const view_ = view.value as keyof typeof methods;
  const mine = at ? sessions.get(at.session)?.tracker.find(at.key) : view_ in methods && item.value[view_] !== undefined ? of(currentSession.value, methods[view_], item.value[view_]) : undefined;
  if (at) found.push({ text: "Compare this call with another", about: "compare  choose it in the traffic", icon: "compare", run: () => { compared.value = at; toast("Choose another call in the traffic to compare with"); } });
  if (!mine || mine.kind !== "request" || mine.direction !== "to-server") return found;
  const name = mine.target ?? mine.method;
  const earlier = of(sessions.get(mine.session), mine.method, mine.target, mine.key);
  if (earlier) found.push(beside(earlier, mine, `Compare with the call of ${name} before`, mine.method));
  for (const other of overview.value?.connections ?? [])
    for (const { id } of other.sessions) {
      const theirs = id === mine.session ? undefined : of(sessions.get(id), mine.method, mine.target);
      if (theirs) found.push(beside(theirs, mine, `Compare with ${name} of ${other.title}, session ${id}`, mine.method));
    }
  return found;
}

/** In a tool, prompt or resource: to its first field, or to the button if it has none. */
function focusFirstField() {
  const main = document.getElementById("main");
  if (document.activeElement !== main) return;
  const fields = "input:not(:disabled), select:not(:disabled), textarea:not(:disabled)";
  (main?.querySelector<HTMLElement>(`[data-testid=arguments] :is(${fields})`) ?? main?.querySelector<HTMLElement>("[data-testid=send]"))?.focus();
}

function Palette() {
  const [needle, setNeedle] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  // At once: what is typed before the next frame is typed here.
  useLayoutEffect(() => {
    input.current?.focus();
    return () => {
      before.current?.focus();
      // Once what was chosen is drawn.
      if (before.current?.id === "main") setTimeout(focusFirstField);
    };
  }, []);
  const all = useMemo(() => {
    const known = catalog.value;
    const found: Command[] = [];
    for (const one of known?.tools.items ?? []) found.push({ text: String(one.name), about: `tool  ${String(one.title ?? one.description ?? "").slice(0, 90)}`, icon: "wrench", run: () => go("tools", String(one.name)) });
    for (const one of known?.prompts.items ?? []) found.push({ text: String(one.name), about: `prompt  ${String(one.description ?? "").slice(0, 90)}`, icon: "message", run: () => go("prompts", String(one.name)) });
    for (const one of known?.resources.items ?? []) found.push({ text: String(one.name ?? one.uri), about: `resource  ${String(one.uri)}`, icon: "file", run: () => go("resources", String(one.uri)) });
    for (const one of known?.templates.items ?? []) found.push({ text: String(one.name ?? one.uriTemplate), about: `template  ${String(one.uriTemplate)}`, icon: "file", run: () => go("resources", String(one.uriTemplate)) });
    for (const one of overview.value?.connections ?? []) found.push({ text: one.title, about: `server  ${one.status}`, icon: "plug", run: () => select(one.id) });
    const id = selected.value;
    for (const one of overview.value?.tests?.cases ?? []) found.push({ text: one.name, about: `test  ${one.state}  ${one.transport} ${one.suite}`, icon: "flask", run: () => void openTest(one) });
    const pages: [string, View, IconName][] = overview.value?.tests ? [] : [["Overview", "overview", "info"], ...(hasTasks(handshake.value) ? [["Tasks", "tasks", "list"] as [string, View, IconName]] : []), ["Logs", "logs", "terminal"], ["Tests", "saved", "flask"]];
    const recorded = connection.value?.status === "recorded";
    if (!recorded && !overview.value?.tests) pages.push(["Check the server", "check", "shield"]);
    if (!isFile && !recorded && !overview.value?.tests && id !== null) pages.push(["When the server asks: policies", "answers", "bell"], ["Roots of the client", "answers", "file"]);
    if (!isFile && !overview.value?.tests) pages.push(["Connect to another server", "connect", "plus"]);
    for (const [text, to, icon] of pages) found.push({ text, about: "page", icon, run: () => go(to) });
    if (id !== null && !recorded && !overview.value?.tests) found.push({ text: "Reconnect", about: "command", icon: "again", run: () => void post(`connections/${id}/open`) }, { text: "Disconnect", about: "command", icon: "plug", run: () => void post(`connections/${id}/close`) });
    const shared = shownSession.value?.id;
    if (!isFile && shared !== undefined && shared >= 0) for (const one of shareMenu(shared)) found.push({ text: `Share this session: ${one.text.toLowerCase().replace("html", "HTML")}`, about: "command", icon: one.icon, run: one.run });
    for (const command of comparisons()) found.push(command);
    if (!isFile && !overview.value?.tests && id !== null) {
      const contracts = (text: string, about: string, sides: Parameters<typeof sidesText>[0]) => found.push({ text, about: `compare  ${about}`, icon: "compare", run: () => go("compare", sidesText(sides)) });
      contracts("Compare contracts", "two servers, eras, revisions, transports, locks or traces", usualSides(overview.value!.connections, id));
      for (const one of overview.value!.connections) if (one.id !== id) contracts(`Compare the contract with that of ${one.title}`, "server", { old: { connection: id }, new: { connection: one.id } });
      contracts("Compare the contract with a lock or a trace", "file", { old: { file: "mcproof.lock" }, new: { connection: id } });
    }
    if (!isFile && !overview.value?.tests) found.push({ text: "Copy a link to this page, with the token", about: "command", icon: "copy", run: () => void copy(addressOf(location.hash.slice(1))).then((done) => toast(done ? "Copied. Whoever has it can use this page until mcproof ends" : "The browser does not allow copying")) });
    if (isNarrow.value) found.push({ text: "Show traffic", about: "command", icon: "panel", run: showTraffic });
    else found.push({ text: trafficOpen.value ? "Hide traffic" : "Show traffic", about: "command", icon: "panel", run: () => (trafficOpen.value ? hideTraffic() : showTraffic()) });
    for (const one of ["light", "dark", "auto"] as const) found.push({ text: `Theme: ${one}`, about: "command", icon: one === "light" ? "sun" : one === "dark" ? "moon" : "auto", run: () => (theme.value = one) });
    return found;
  }, [catalog.value, overview.value]);
  const parts = needle.toLowerCase().split(/\s+/).filter(Boolean);
  const score = (command: Command) => {
    const [text, about] = [command.text.toLowerCase(), command.about.toLowerCase()];
    let total = 0;
    for (const part of parts) {
      if (text.startsWith(part)) total += 4;
      else if (text.includes(part)) total += 3;
      else if (about.includes(part)) total += 1;
      else return 0;
    }
    return total + 1;
  };
  const found = parts.length === 0 ? all.slice(0, 60) : all.map((command) => ({ command, value: score(command) })).filter(({ value }) => value > 0).sort((one, other) => other.value - one.value).slice(0, 60).map(({ command }) => command);
  const close = () => (paletteOpen.value = false);
  const choose = (command: Command | undefined) => {
    if (!command) return;
    // The keyboard goes on in what was chosen.
    if (command.about !== "command") before.current = document.getElementById("main");
    close();
    command.run();
  };
  return (
    <div class="veil" onMouseDown={(event) => event.target === event.currentTarget && close()}>
      <div class="palette" role="dialog" aria-modal="true" aria-label="Search everything" data-testid="palette" onKeyDown={(event) => {
        if (event.key === "Escape") close();
        else if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
        else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
        else if (event.key === "Enter") choose(found[at]);
        else if (event.key !== "Tab") return;
        event.preventDefault();
      }}>
        <div class="palette-input"><Icon name="search" /><input ref={input} value={needle} placeholder="Tools, prompts, resources, servers, commands" aria-label="Search everything" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={found[at] ? `palette-${at}` : undefined} autocomplete="off" spellcheck={false} onInput={(event) => { setNeedle(event.currentTarget.value); setAt(0); }} /></div>
        <div class="palette-list" id="palette-list" role="listbox" aria-label="Found">
          {found.map((command, index) => <div key={command.about + command.text} id={`palette-${index}`} role="option" aria-selected={index === at} class="palette-item" onMouseMove={(event) => { if (event.movementX || event.movementY) setAt(index); }} onClick={() => choose(command)} ref={(element) => { if (index === at) element?.scrollIntoView({ block: "nearest" }); }}><Icon name={command.icon} size={15} /><span class="clip">{visible(command.text)}</span><span class="muted small clip grow">{visible(command.about)}</span></div>)}
          {found.length === 0 && <p class="muted pad">Nothing is called that.</p>}
        </div>
      </div>
    </div>
  );
}
