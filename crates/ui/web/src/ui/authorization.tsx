// A server requires authorization: each step of the flow with its request and response, and the click that goes on.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { post } from "../lib/api";
import { read } from "../lib/lossless";
import { frameVersion, sessions, toast } from "../lib/store";
import { rawText, visible } from "../lib/text";
import type { Connection, Frame, SignIn, SignInStep } from "../lib/types";
import { Badge, Button, CopyButton, Icon, Said } from "./basics";
import { Plain, Tree } from "./result";
import { Head } from "./story";

type Kind = SignInStep["kind"];

/** What each step is called, and what it is for. */
const STEPS: Record<Kind, { title: string; why: string }> = {
  "resource-metadata": { title: "Protected resource metadata", why: "The server names its authorization server." },
  "server-metadata": { title: "Authorization server metadata", why: "The authorization server names its endpoints." },
  registration: { title: "Client registration", why: "mcproof gets a client ID." },
  consent: { title: "Sign-in page", why: "You sign in and consent in your browser." },
  callback: { title: "Callback", why: "The browser comes back with a code." },
  assertion: { title: "Identity assertion", why: "Your identity provider vouches for you." },
  token: { title: "Access token", why: "The code is exchanged for a token." },
  renewal: { title: "Token refresh", why: "The refresh token is exchanged for a new token." },
};
/** The way of a user in a browser. */
const WAY: Kind[] = ["resource-metadata", "server-metadata", "registration", "consent", "callback", "token"];

/** Whether the user has just let the flow go on. */
let goesOn = false;

export const waitsForUser = (flow: SignIn | null | undefined) => flow?.state === "waiting" || flow?.state === "page";

export function Authorization({ connection: at }: { connection: Connection }) {
  frameVersion.value;
  const flow = at.authorization;
  // Whoever went through it sees the end; later it is one line.
  const [folded, setFolded] = useState(flow?.state === "authorized");
  if (!flow) return null;
  const say = (go: "next" | "all" | "stop") => {
    goesOn = go !== "stop";
    // A request that is on its way goes away with the connection.
    if (go === "stop" && flow.state !== "waiting") return void post(`connections/${at.id}/close`).catch((error: Error) => toast(error.message, "error"));
    void post(`connections/${at.id}/authorization`, { go }).catch((error: Error) => toast(error.message, "error"));
  };
  const last = flow.steps.at(-1);
  const reached = Math.max(-1, ...flow.steps.map((step) => WAY.indexOf(step.kind)));
  const ahead = flow.state === "authorized" || flow.state === "failed" || last?.kind === "renewal" ? [] : WAY.slice(reached + 1);
  const states = { waiting: ["info", "waits for you"], page: ["info", "waits for you"], running: ["info", "running"], authorized: ["ok", "authorized"], failed: ["error", "failed"] } as const;
  const [kind, text] = states[flow.state];
  return (
    <section class="authorization" data-testid="authorization" data-status={flow.state} aria-labelledby="authorization-title">
      <div class="block-bar wraps"><h2 id="authorization-title">Authorization</h2><Badge kind={kind}>{text}</Badge><span class="grow" />{(waitsForUser(flow) || flow.state === "running") && <Button kind="quiet" icon="stop" data-testid="auth-stop" onClick={() => say("stop")}>Stop the authorization</Button>}{flow.state === "authorized" && <button type="button" class="link small" aria-expanded={!folded} data-testid="auth-fold" onClick={() => setFolded(!folded)}>{folded ? "Show" : "Hide"} the steps</button>}</div>
      {flow.failure && <p class="note error" role="alert" data-testid="auth-failure"><Said text={flow.failure} /></p>}
      {flow.state === "failed" && <Client at={at} open={last?.kind === "registration" || (last?.kind === "server-metadata" && /client id/.test(flow.failure ?? ""))} />}
      {(!folded || flow.state !== "authorized") && <ol class="flow" aria-label="Steps">
        <Refused flow={flow} />
        {flow.steps.map((step, index) => (
          <Step key={index} flow={flow} step={step}>
            {step === last && flow.state === "waiting" && (
              <div class="actions" role="group" aria-label="Go on">
                <Button kind="primary" icon="play" data-testid="auth-next" onClick={() => say("next")}>Send this request</Button>
                <Button data-testid="auth-all" onClick={() => say("all")}>{reached < WAY.indexOf("consent") ? "Go on to the sign-in page" : "Go on to the end"}</Button>
              </div>
            )}
          </Step>
        ))}
        {ahead.map((kind) => <li key={kind} class="flow-ahead"><span class="flow-mark"><Icon name="dot" size={15} /></span><div class="flow-body"><p class="flow-title"><strong>{STEPS[kind].title}</strong></p><p class="small muted">{STEPS[kind].why}</p></div></li>)}
      </ol>}
    </section>
  );
}

/** A client that was registered by hand, in place of one that mcproof registers. */
function Client({ at, open }: { at: Connection; open: boolean }) {
  const [shown, setShown] = useState(open);
  const [client, setClient] = useState({ clientId: at.spec.clientId ?? "", clientSecret: "", scope: at.spec.scope ?? "" });
  const field = (name: keyof typeof client, label: string, more: Record<string, unknown> = {}) => <label class="stacked">{label}<input class="mono" data-testid={`auth-${name}`} autocomplete="off" spellcheck={false} {...more} value={client[name]} onInput={(event) => setClient({ ...client, [name]: event.currentTarget.value })} /></label>;
  const submit = (event: Event) => {
    event.preventDefault();
    void post(`connections/${at.id}/open`, client).catch((error: Error) => toast(error.message, "error"));
  };
  return (
    <>
      <div><button type="button" class="link small" aria-expanded={shown} data-testid="auth-client" onClick={() => setShown(!shown)}>Use a registered client</button></div>
      {shown && (
        <form class="save-as" onSubmit={submit}>
          <p class="small muted">Register a client with the authorization server by hand, for the redirect URI <code>http://127.0.0.1/callback</code> on any port or that of <code>--callback-url</code>, and put its ID here.</p>
          {field("clientId", "Client ID", { required: true })}
          {field("clientSecret", `Client secret, if it has one${at.spec.clientSecret !== null ? "; empty keeps it" : ""}`, { type: "password", placeholder: "env:NAME, file:PATH or the secret" })}
          {field("scope", "Scopes, separated by spaces", { placeholder: "those that the server names" })}
          <Button kind="primary" icon="shield" type="submit" data-testid="auth-use-client">Sign in with this client</Button>
        </form>
      )}
    </>
  );
}

function framesOf(flow: SignIn, exchange: number | undefined): Frame[] {
  if (exchange === undefined) return [];
  const found: Frame[] = [];
  for (const frame of sessions.get(flow.session)?.frames.values() ?? []) if ("exchange" in frame.body && frame.body.exchange === exchange) found.push(frame);
  return found;
}

function Refused({ flow }: { flow: SignIn }) {
  const frames = framesOf(flow, flow.refused);
  const response = frames.find((frame) => frame.body.kind === "http-response");
  const status = response?.body.kind === "http-response" ? response.body.status : undefined;
  return (
    <li class="flow-done" data-testid="auth-step" data-kind="refused" data-status="done">
      <span class="flow-mark"><Icon name="shield" size={15} /></span>
      <div class="flow-body">
        <p class="flow-title"><strong>The server requires authorization</strong>{status !== undefined && <span class="muted small">HTTP {status}</span>}</p>
        <p class="small muted">It refused <code>{visible(flow.operation)}</code>.</p>
        <Exchange frames={frames} />
      </div>
    </li>
  );
}

function Step({ flow, step, children }: { flow: SignIn; step: SignInStep; children?: ComponentChildren }) {
  const { title, why } = STEPS[step.kind];
  const icon = step.state === "failed" ? "alert" : step.state === "done" ? "check" : step.state === "unneeded" ? "check" : "right";
  const isPage = step.kind === "consent" && flow.page !== null && step.state === "running";
  const place = useRef<HTMLLIElement>(null);
  const isCurrent = step.state === "waiting" || isPage;
  useEffect(() => {
    if (!isCurrent) return;
    place.current?.scrollIntoView({ block: "nearest" });
    // The button that was pressed is gone: the keyboard goes on at the next one.
    if (goesOn) place.current?.querySelector<HTMLElement>(".button.primary")?.focus({ preventScroll: true });
    goesOn = false;
  }, [isCurrent]);
  return (
    <li ref={place} class={`flow-${step.state}`} data-testid="auth-step" data-kind={step.kind} data-status={step.state} aria-current={isCurrent ? "step" : undefined}>
      <span class="flow-mark">{step.state === "running" && !isPage ? <span class="spinner" /> : <Icon name={icon} size={15} />}</span>
      <div class="flow-body">
        <p class="flow-title"><strong>{title}</strong>{step.about && step.state !== "unneeded" && <span class={step.state === "failed" ? "bad small" : "muted small"}>{visible(step.about)}</span>}</p>
        <p class="small muted">{step.state === "unneeded" ? <>Not needed: <Said text={step.about ?? ""} />.</> : why}</p>
        {step.kind === "consent" ? <Consent step={step} open={isPage} /> : step.kind === "callback" ? <Callback url={step.url ?? ""} /> : step.url && <p class="flow-request"><code>{step.method}</code> <code class="uri">{visible(step.url)}</code></p>}
        <Exchange frames={framesOf(flow, step.exchange)} />
        {children}
      </div>
    </li>
  );
}

/** The address in parts, and the click that opens it: nothing leads there by itself. */
function Consent({ step, open }: { step: SignInStep; open: boolean }) {
  const url = step.url ?? "";
  let parts: URL | undefined;
  try {
    parts = new URL(url);
  } catch {
    parts = undefined;
  }
  const safe = parts !== undefined && /^https?:$/.test(parts.protocol);
  return (
    <>
      <p class="flow-request"><code class="uri" data-testid="auth-page">{visible(url)}</code></p>
      {parts && <Parameters parameters={parts.searchParams} />}
      {open && <div class="actions">{safe ? <a class="button primary" href={url} target="_blank" rel="noopener noreferrer nofollow" referrerpolicy="no-referrer" data-testid="auth-open">Open {visible(parts!.host)} in a new tab</a> : <p class="note error">This address is not one of the web: it is not opened.</p>}<CopyButton text={() => url} label="Copy the address of the sign-in page" /></div>}
      {open && <p class="running" role="status"><span class="spinner" /> Waiting until the browser comes back.</p>}
    </>
  );
}

function Callback({ url }: { url: string }) {
  try {
    const parts = new URL(url);
    return <><p class="flow-request"><code class="uri">{visible(parts.origin + parts.pathname)}</code></p><Parameters parameters={parts.searchParams} /></>;
  } catch {
    return <p class="flow-request"><code class="uri">{visible(url)}</code></p>;
  }
}

function Parameters({ parameters }: { parameters: URLSearchParams }) {
  const all = [...parameters];
  if (all.length === 0) return null;
  return <table class="headers"><tbody>{all.map(([name, value], index) => <tr key={index}><th scope="row">{visible(name)}</th><td>{visible(value)}</td></tr>)}</tbody></table>;
}

/** The request and the response, unfolded on demand. */
function Exchange({ frames }: { frames: Frame[] }) {
  const [open, setOpen] = useState(false);
  if (frames.length === 0) return null;
  return (
    <>
      <button type="button" class="link small" aria-expanded={open} data-testid="auth-exchange" onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"} request and response</button>
      {open && <div class="flow-exchange">{frames.map((frame) => <Part key={frame.id} frame={frame} />)}</div>}
    </>
  );
}

function Part({ frame }: { frame: Frame }) {
  const { body } = frame;
  if (body.kind === "http-response") return <Head frame={frame} />;
  if (body.kind === "http-request") return <><Head frame={frame} /><Body text={rawText(body.body)} /></>;
  return body.kind === "http-body" ? <Body text={rawText(body.bytes)} /> : null;
}

function Body({ text }: { text: string }) {
  if (text === "") return null;
  try {
    return <Tree value={read(text)} open={3} />;
  } catch {
    return <Plain text={text} />;
  }
}
