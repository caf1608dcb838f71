// An app of a server (MCP Apps), in its frame: what it is shown with, what it asks for, and why it stays blank.
import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../lib/api";
import { AppBridge, causesOf, pageOf, PROFILES, type Cause, type HostContext, type HostProfile } from "../lib/apps";
import { isObject } from "../lib/calls";
import { write } from "../lib/lossless";
import { catalog, connection, overview, recordApp, request, runs, systemDark, theme } from "../lib/store";
import { size, visible } from "../lib/text";
import type { JsonObject } from "../lib/types";
import { Badge, Button, Icon } from "./basics";
import { Tree } from "./result";

interface Opened { url: string; policy: string; withheld: { key: string; value: string; why: string }[] }
interface Link { url: string; answer: (open: boolean) => void }

const WIDTHS: [string, number][] = [["full", 0], ["1024 px", 1024], ["720 px", 720], ["360 px", 360]];

/** One app for one call, or for none: the resource alone. */
export function App({ id, uri, tool, slot }: { id: number; uri: string; tool?: JsonObject; slot?: string }) {
  const last = slot === undefined ? undefined : runs.value.get(slot);
  const [profile, setProfile] = useState<HostProfile["id"]>("specification");
  const [scheme, setScheme] = useState<"auto" | "light" | "dark">("auto");
  const [width, setWidth] = useState(0);
  const [turn, setTurn] = useState(0);
  if (connection.value?.status !== "open") return null;
  return (
    <section class="app-panel" data-testid="app" aria-label="App">
      <div class="app-bar">
        <Badge kind="info">app</Badge><code class="clip">{visible(uri)}</code><span class="grow" />
        <label class="inline">Host<select data-testid="app-profile" title={PROFILES.find((one) => one.id === profile)!.source} value={profile} onChange={(event) => setProfile(event.currentTarget.value as HostProfile["id"])}>{PROFILES.map((one) => <option key={one.id} value={one.id}>{one.text}</option>)}</select></label>
        <label class="inline">Theme<select data-testid="app-theme" value={scheme} onChange={(event) => setScheme(event.currentTarget.value as "auto")}>{["auto", "light", "dark"].map((one) => <option key={one}>{one}</option>)}</select></label>
        <label class="inline">Width<select data-testid="app-width" value={String(width)} onChange={(event) => setWidth(Number(event.currentTarget.value))}>{WIDTHS.map(([text, value]) => <option key={text} value={String(value)}>{text}</option>)}</select></label>
        <Button kind="quiet" icon="again" label="Open the app anew" data-testid="app-reload" onClick={() => setTurn(turn + 1)} />
      </div>
      <Running key={`${last?.key ?? ""} ${turn} ${profile}`} id={id} uri={uri} tool={tool} slot={slot} profile={profile} scheme={scheme} width={width} />
    </section>
  );
}

function Running({ id, uri, tool, slot, profile, scheme, width }: { id: number; uri: string; tool?: JsonObject; slot?: string; profile: HostProfile["id"]; scheme: "auto" | "light" | "dark"; width: number }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const bridge = useRef<AppBridge | null>(null);
  const [, told] = useState(0);
  const [opened, setOpened] = useState<Opened | null>(null);
  const [problems, setProblems] = useState<Cause[]>([]);
  const [links, setLinks] = useState<Link[]>([]);
  const [mode, setMode] = useState<HostContext["displayMode"]>("inline");
  const [part, setPart] = useState(false);
  const page = useRef<{ meta: JsonObject; size: number }>({ meta: {}, size: 0 });
  const run = slot === undefined ? undefined : runs.value.get(slot);
  const dark = scheme === "auto" ? (theme.value === "auto" ? systemDark.value : theme.value === "dark") : scheme === "dark";
  const context = useRef<HostContext>({ theme: "light", width: 0, displayMode: "inline" });
  context.current = { theme: dark ? "dark" : "light", width: width || frame.current?.parentElement?.clientWidth || 720, displayMode: mode };

  useEffect(() => {
    let gone = false;
    const failed = (problem: string, text: string, hint: string) => setProblems([{ id: problem, severity: "error", text, hint }]);
    void (async () => {
      try {
        const outcome = await request(id, "resources/read", { uri });
        if (gone) return;
        if (!outcome.result) return failed("not-readable", `resources/read of ${uri} failed: ${outcome.error?.message ?? outcome.failure?.message ?? "no response"}`, tool ? "register the resource that _meta.ui.resourceUri of the tool names" : "");
        const found = pageOf(outcome.result, uri, catalog.value?.resources.items.find((one) => one.uri === uri));
        setProblems(found.causes);
        page.current = { meta: found.meta, size: found.html.length };
        // What no host shows is not shown here either.
        if (found.causes.some((cause) => cause.severity === "error")) return;
        const view = await post<Opened>(`connections/${id}/views`, { html: found.html, csp: cspOf(found.meta), profile });
        if (!gone) setOpened(view);
      } catch (error) {
        if (!gone) failed("not-shown", (error as Error).message, "");
      }
    })();
    return () => {
      gone = true;
    };
  }, []);

  useEffect(() => {
    if (!opened) return;
    const session = connection.value?.sessions.at(-1);
    const made = new AppBridge(frame.current!, new URL(opened.url).origin, {
      tool, arguments: isObject(run?.params.arguments) ? run.params.arguments : {}, version: overview.value?.version ?? "", meta: page.current.meta,
      context: () => context.current, tools: () => catalog.value?.tools.items ?? [], request: (method, params) => request(id, method, params),
      openLink: (url) => new Promise((answer) => setLinks((links) => (links.length < 5 ? [...links, { url, answer }] : (answer(false), links)))),
      setMode: (next) => { context.current = { ...context.current, displayMode: next }; setMode(next); },
      passed: (message, direction) => session && recordApp(session, message, direction),
    });
    bridge.current = made;
    const stop = made.facts.subscribe(() => told((count) => count + 1));
    frame.current!.src = opened.url;
    return () => {
      stop();
      // Nobody waits for an app whose frame is gone.
      made.end();
    };
  }, [opened]);

  const ended = run?.outcome !== undefined || run?.refused !== undefined;
  useEffect(() => {
    if (!opened || !ended || !bridge.current) return;
    if (run?.outcome?.result) bridge.current.result(run.outcome.result);
    else bridge.current.canceled(run?.outcome?.error?.message ?? run?.outcome?.failure?.message ?? "the call was canceled");
  }, [opened, ended]);
  useEffect(() => bridge.current?.contextChanged({ theme: dark ? "dark" : "light" }), [dark]);
  useEffect(() => bridge.current?.contextChanged({ containerDimensions: { width: context.current.width, maxHeight: 4000 } }), [width]);
  useEffect(() => bridge.current?.contextChanged({ displayMode: mode }), [mode]);

  const facts = bridge.current?.facts.value;
  const causes = [...problems, ...(facts ? causesOf(facts) : [])];
  const state = causes.some((cause) => cause.severity === "error") ? "failed" : facts?.initialized ? "initialized" : "loading";
  const answer = (link: Link, open: boolean) => {
    setLinks((links) => links.filter((one) => one !== link));
    if (open) window.open(link.url, "_blank", "noopener,noreferrer");
    link.answer(open);
  };
  const height = mode === "fullscreen" ? undefined : `${Math.max(40, Math.ceil(facts?.height ?? 320))}px`;
  return (
    <div class={`app-view ${mode}`} data-testid="app-view" data-status={state}>
      {opened && <div class="app-room" style={width ? { maxWidth: `${width}px` } : {}}><iframe ref={frame} class="app-frame" title={`App ${uri}`} sandbox="allow-scripts allow-same-origin allow-forms" allow={isObject(page.current.meta.permissions) && page.current.meta.permissions.clipboardWrite !== undefined ? "clipboard-write" : ""} referrerpolicy="no-referrer" style={{ colorScheme: dark ? "dark" : "light", height }} /></div>}
      {mode === "fullscreen" && <div class="actions"><Button icon="close" onClick={() => setMode("inline")}>Leave full screen</Button></div>}
      {links.map((link) => <div class="note app-link" key={link.url} data-testid="app-link"><span>The app wants to open <code class="uri">{visible(link.url)}</code></span><Button onClick={() => answer(link, true)}>Open</Button><Button kind="quiet" onClick={() => answer(link, false)}>Refuse</Button></div>)}
      {causes.map((cause, index) => <div class={`note ${cause.severity}`} role={cause.severity === "error" ? "alert" : undefined} key={index} data-testid="app-cause" data-cause={cause.id}><p><Icon name="alert" size={14} /> <strong>{visible(cause.text)}</strong></p>{cause.hint && <p>{visible(cause.hint)}</p>}</div>)}
      {facts?.refused.map((refused) => <p class="note warning" key={refused.method + refused.why} data-testid="app-refused"><code>{visible(refused.method)}</code> was refused: {visible(refused.why)}</p>)}
      {facts?.logs.map((log) => <p class="small" key={log.level + log.text}><Badge>{visible(log.level)}</Badge> {visible(log.text)}</p>)}
      {facts?.messages.map((message, index) => <div key={index}><p class="small muted">Message for the conversation</p><Tree value={message} open={5} /></div>)}
      {facts?.context && <div><p class="small muted">Context for the model</p><pre class="text-block" tabIndex={0} data-testid="app-context">{visible(write(facts.context, 2)).slice(0, 20_000)}</pre></div>}
      {opened && <p class="small muted"><span data-testid="app-state">{state === "initialized" ? "initialized" : state === "failed" ? "does not work" : "loading"}</span>, {size(page.current.size)} of HTML. <button type="button" class="link" aria-expanded={part} onClick={() => setPart(!part)}>Policy</button></p>}
      {opened && part && <div class="block"><p class="small"><code class="uri">{opened.policy}</code></p>{opened.withheld.map((one) => <p class="note warning" key={one.key + one.value}><code>{one.key}</code> {visible(one.value)}: {one.why}</p>)}<Tree value={page.current.meta} open={3} /></div>}
    </div>
  );
}

function cspOf(meta: JsonObject): JsonObject {
  const csp = isObject(meta.csp) ? meta.csp : {};
  const found: JsonObject = {};
  for (const key of ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"]) {
    const given = csp[key];
    if (Array.isArray(given)) found[key] = given.filter((one) => typeof one === "string");
  }
  return found;
}
