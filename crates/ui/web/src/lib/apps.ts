// The host side of MCP Apps (2026-01-26): messages between the page and one app, what the app may ask for, and why its frame stays blank.
// Knows no elements but the window of its frame.
import { signal } from "@preact/signals";
import { isObject } from "./calls";
import { own } from "./lossless";
import type { Json, JsonObject } from "./types";

export const APP_MIME = "text/html;profile=mcp-app";
const VERSION = "2026-01-26";

export interface HostProfile {
  id: "specification" | "reference" | "claude" | "strict";
  text: string;
  /** Where it is known from. */
  source: string;
}

export const PROFILES: HostProfile[] = [
  { id: "specification", text: "As specified", source: "MCP Apps 2026-01-26: declared domains and storage are granted" },
  { id: "reference", text: "Reference host", source: "examples/basic-host of modelcontextprotocol/ext-apps: also eval, and scripts, workers, fonts and images from blob: and data:" },
  { id: "claude", text: "Claude", source: "as measured and reported of Claude (July and August 2026): also eval, and scripts, workers and images from blob:; no nested frames, no base, no blob: and data: among the domains" },
  { id: "strict", text: "Strict", source: "no domains and no storage, which the specification allows hosts" },
];

/** The resource that a tool names for its results. */
export function appUri(tool: JsonObject): string | undefined {
  const meta = isObject(tool._meta) ? tool._meta : {};
  const ui = isObject(meta.ui) ? meta.ui : {};
  const uri = ui.resourceUri ?? meta["ui/resourceUri"];
  return typeof uri === "string" ? uri : undefined;
}

/** Whether apps may call a tool. */
function isForApps(tool: JsonObject): boolean {
  const ui = isObject(tool._meta) && isObject(tool._meta.ui) ? tool._meta.ui : {};
  return !Array.isArray(ui.visibility) || ui.visibility.includes("app");
}

export interface Cause {
  id: string;
  severity: "error" | "warning";
  text: string;
  hint: string;
}

export interface Page {
  html: string;
  meta: JsonObject;
  causes: Cause[];
}

/** The HTML in a result of `resources/read`, with all that is wrong with it. */
export function pageOf(result: JsonObject, uri: string, listed?: JsonObject): Page {
  const causes: Cause[] = [];
  const wrong = (id: string, text: string, hint: string, severity: "error" | "warning" = "error") => causes.push({ id, severity, text, hint });
  const contents = Array.isArray(result.contents) ? result.contents.filter(isObject) : [];
  const content = contents.find((one) => one.uri === uri) ?? contents[0];
  if (!content) {
    wrong("no-content", `resources/read of ${uri} returned no content`, "return one item in `contents`, with the HTML as `text`");
    return { html: "", meta: {}, causes };
  }
  if (!uri.startsWith("ui://")) wrong("wrong-uri", `the URI ${uri} does not begin with ui://`, "hosts show only resources whose URI begins with ui://");
  if (content.uri !== uri) wrong("other-uri", `the content is of ${String(content.uri)}, not of ${uri}`, "return the URI that was read", "warning");
  const mime = typeof content.mimeType === "string" ? content.mimeType : "";
  if (mime.replaceAll(" ", "").toLowerCase() !== APP_MIME)
    wrong("wrong-mime-type", mime === "" ? "the content has no mimeType" : `the content has the mimeType ${mime}`, `hosts show only ${APP_MIME}: set it in the result of resources/read, too`);
  let html = "";
  if (typeof content.text === "string") html = content.text;
  else if (typeof content.blob === "string") {
    try {
      html = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(content.blob), (char) => char.charCodeAt(0)));
    } catch {
      wrong("bad-blob", "the blob is not Base64 of UTF-8", "encode the HTML as UTF-8 and then as Base64, or return it as `text`");
    }
  } else wrong("no-html", "the content has neither text nor blob", "return the HTML as `text`");
  if (html !== "" && !/^\s*(?:<!--[\s\S]*?-->\s*)*<(?:!doctype html|html)/i.test(html.replace(/^\ufeff/, "")))
    wrong("not-html", "the content does not begin as an HTML document", "begin it with <!doctype html>", "warning");
  if ((typeof content.text === "string" || typeof content.blob === "string") && html.trim() === "" && causes.every((cause) => cause.id !== "bad-blob"))
    wrong("empty", "the HTML is empty", "return the built page: a build that has not run yet is a common reason");
  const of = (one: JsonObject | undefined) => (one && isObject(one._meta) && isObject(one._meta.ui) ? one._meta.ui : undefined);
  return { html, meta: of(content) ?? of(listed) ?? {}, causes };
}

/** What an app has done so far. */
export interface Facts {
  proxy: boolean;
  frame: boolean;
  initialize?: JsonObject;
  initialized: boolean;
  drawn?: {
    elements: number;
    visible: boolean;
    height: number;
    /** Whether it shows the text of an error about the content security policy. */
    refused: boolean;
  };
  height?: number;
  scriptErrors: { message: string; line?: number }[];
  /** `late` if the app was initialized already. */
  blocked: { directive: string; url: string; late: boolean }[];
  /** `own` if the URL is relative to the HTML, which has no files beside it. */
  loadErrors: { tag: string; url: string; own: boolean }[];
  others: string[];
  left: string[];
  /** Seconds since it was opened, in steps. */
  waited: number;
  flooded: boolean;
  refused: { method: string; why: string }[];
  logs: { level: string; text: string }[];
  context?: JsonObject;
  messages: JsonObject[];
}

export const NOTHING: Facts = { proxy: false, frame: false, initialized: false, scriptErrors: [], blocked: [], loadErrors: [], others: [], left: [], waited: 0, flooded: false, refused: [], logs: [], messages: [] };

const KEY_OF: Record<string, string> = { "connect-src": "connectDomains", "frame-src": "frameDomains", "base-uri": "baseUriDomains" };

function originOf(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return url;
  }
}

/** What to do about something that the policy has blocked, and which hosts allow it. */
function remedyOf(directive: string, url: string): string {
  if (url === "eval" || url === "wasm-eval") return `a server cannot ask for it (ext-apps#${url === "eval" ? "199" : "605"}): the reference host and Claude allow it, the specification's default policy, VS Code and Cursor do not. ${url === "eval" ? "Build without `eval` and `new Function`" : "Go without WebAssembly there"}, or choose one of those hosts above`;
  if (url === "blob" && /^(worker|script)-src/.test(directive)) return "the reference host and Claude allow workers and scripts from blob:, the specification's default policy and VS Code (microsoft/vscode#331633) do not: load them from a declared origin, or choose one of those hosts above";
  if (url === "blob" || url === "data") return `declare "${url}:" in _meta.ui.csp.${own(KEY_OF, directive) ?? "resourceDomains"}, which Claude leaves out (claude-ai-mcp#375), or inline it`;
  if (url === "inline") return "inline code is not allowed here";
  return `declare ${originOf(url)} in _meta.ui.csp.${own(KEY_OF, directive) ?? "resourceDomains"} of the resource, or inline it; a host profile may withhold it`;
}

/** Why the frame is blank, or the app does not work, the likeliest first. */
export function causesOf(facts: Facts): Cause[] {
  const causes: Cause[] = [];
  const tell = (id: string, severity: Cause["severity"], text: string, hint: string) => causes.push({ id, severity, text, hint });
  if (facts.flooded) tell("flood", "error", "the app sent more messages than a host can take, and was stopped", "look for an effect that sends a message each time it receives one");
  if (!facts.proxy && facts.waited >= 5) tell("no-frame", "error", "the frame does not load", "apps are shown on a port of 127.0.0.1: open this page on the machine where mcproof runs, and check what blocks local frames in the browser");
  const told = new Set<string>();
  for (const { directive, url, late } of facts.blocked) {
    const isEval = url === "eval" || url === "wasm-eval";
    const shown = isEval && facts.drawn?.refused === true;
    // Libraries try `eval` when they load, and go on without it.
    if (isEval && facts.initialized && !late && !shown) continue;
    if (told.has(`${directive} ${url}`)) continue;
    told.add(`${directive} ${url}`);
    const dead = shown || (!facts.initialized && /^(script|style)-src|^connect-src|^default-src/.test(directive));
    tell("blocked", dead ? "error" : "warning", `the content security policy blocked ${url} (${directive})${shown ? ", and the app shows an error about it" : ""}`, remedyOf(directive, url));
  }
  for (const { message, line } of facts.scriptErrors) tell("script-error", facts.initialized ? "warning" : "error", `script error: ${message}${line ? ` (line ${line})` : ""}`, "the page's own script failed: its line counts from the first line of the HTML");
  for (const { tag, url, own: beside } of facts.loadErrors) if (!facts.blocked.some((blocked) => blocked.url === url)) tell("load-error", facts.initialized ? "warning" : "error", `<${tag}> did not load ${url}`, beside ? "the HTML has no address of its own: files beside it do not exist for hosts, so inline them, or declare their origin" : /^https?:/.test(url) ? "the policy lets it through, so the network or its server does not: open the URL in this browser, and check that it responds with status 200" : "its data is not what the element can show");
  for (const url of facts.left) tell("left", "error", `the app tried to leave its frame for ${url}`, "an app stays in its document: open links with ui/open-link");
  if (facts.frame && !facts.initialize && facts.waited >= 3) {
    const other = facts.others[0];
    if (other !== undefined) tell("other-protocol", "error", `the app sends messages that are not JSON-RPC: ${other.slice(0, 160)}`, "send { jsonrpc: \"2.0\", … } to window.parent, as @modelcontextprotocol/ext-apps does");
    tell("no-initialize", "error", "the app has sent no ui/initialize", "call connect() of the SDK, or send ui/initialize: hosts send nothing before it");
  }
  if (facts.initialize) {
    const { appInfo, clientInfo, appCapabilities, protocolVersion } = facts.initialize;
    if (!isObject(appInfo)) tell("no-app-info", "warning", `ui/initialize has no appInfo${clientInfo !== undefined ? ", but clientInfo" : ""}`, "name the app in `appInfo: { name, version }`: some hosts refuse the request without it");
    if (!isObject(appCapabilities)) tell("no-app-capabilities", "warning", `ui/initialize has no appCapabilities${facts.initialize.capabilities !== undefined ? ", but capabilities" : ""}`, "send `appCapabilities: {}`: it is required");
    if (protocolVersion !== VERSION) tell("other-version", "warning", `ui/initialize asks for revision ${JSON.stringify(protocolVersion ?? null)}`, `the stable revision is ${VERSION}`);
    if (!facts.initialized && facts.waited >= 3) tell("no-initialized", "error", "the app has not sent ui/notifications/initialized", "send it after the response to ui/initialize: hosts send the input and the result of the tool only then");
  }
  if (facts.waited >= 5 && facts.drawn && !facts.drawn.visible) tell("nothing-drawn", "error", `the document shows nothing: ${facts.drawn.elements} elements, none of them visible`, facts.initialized ? "the app is connected, so look at what it does with ui/notifications/tool-result" : "see what is named above");
  else if (facts.height !== undefined && facts.height < 8) tell("no-height", "error", `the app reports a height of ${facts.height} px`, "its root element has no height: hosts make the frame as high as the app says");
  const rank = { error: 0, warning: 1 };
  return causes.sort((one, other) => rank[one.severity] - rank[other.severity]).slice(0, 30);
}

export interface HostContext {
  theme: "light" | "dark";
  width: number;
  displayMode: "inline" | "fullscreen";
}

export interface Host {
  tool?: JsonObject;
  arguments: JsonObject;
  /** For `hostInfo`. */
  version: string;
  meta: JsonObject;
  context: () => HostContext;
  tools: () => JsonObject[];
  /** To the server. */
  request: (method: string, params: JsonObject) => Promise<{ result?: JsonObject; error?: { code: number; message: string; data?: Json }; failure?: { message: string } }>;
  /** Asks the user. */
  openLink: (url: string) => Promise<boolean>;
  setMode: (mode: "inline" | "fullscreen") => void;
  /** A message has passed. */
  passed: (message: JsonObject, direction: "to-app" | "from-app") => void;
}

const MOST_PER_SECOND = 400;
const LONGEST_TEXT = 8 << 20;
const KEPT = 50;

export class AppBridge {
  readonly facts = signal<Facts>(NOTHING);
  private held: [string, JsonObject][] = [];
  private next = 0;
  private open = new Map<number, () => void>();
  private second = 0;
  private count = 0;
  private closed = false;
  private clock: ReturnType<typeof setInterval>;
  private listener = (event: MessageEvent) => this.receive(event);

  constructor(private frame: HTMLIFrameElement, private origin: string, private host: Host) {
    addEventListener("message", this.listener);
    this.clock = setInterval(() => {
      const waited = this.facts.value.waited + 1;
      this.put({ waited });
      if (waited >= 10) clearInterval(this.clock);
    }, 1000);
    this.notify("ui/notifications/tool-input", { arguments: host.arguments });
  }

  /** The tool has ended. */
  result(result: JsonObject) {
    this.notify("ui/notifications/tool-result", result);
  }

  canceled(reason: string) {
    this.notify("ui/notifications/tool-cancelled", { reason });
  }

  contextChanged(changed: JsonObject) {
    if (this.facts.value.initialized) this.notify("ui/notifications/host-context-changed", changed);
  }

  /** Tells the app that it ends, and waits for its response, but not for long. */
  async close(reason: string) {
    if (this.closed) return;
    if (this.facts.value.initialized) {
      const id = ++this.next;
      const answered = new Promise<void>((done) => {
        this.open.set(id, done);
        setTimeout(done, 500);
      });
      this.post({ jsonrpc: "2.0", id, method: "ui/resource-teardown", params: { reason } });
      await answered;
    }
    this.end();
  }

  end() {
    this.closed = true;
    clearInterval(this.clock);
    removeEventListener("message", this.listener);
  }

  private put(facts: Partial<Facts>) {
    this.facts.value = { ...this.facts.value, ...facts };
  }

  private add<K extends "scriptErrors" | "blocked" | "loadErrors" | "others" | "left" | "refused" | "logs" | "messages">(key: K, one: Facts[K][number]) {
    const before = this.facts.value[key] as Facts[K][number][];
    const text = JSON.stringify(one);
    if (before.length < KEPT && !before.some((known) => JSON.stringify(known) === text)) this.put({ [key]: [...before, one] } as Partial<Facts>);
  }

  private post(message: JsonObject) {
    this.host.passed(message, "to-app");
    // The frame between can only be one of that origin; the app in it may have none.
    // An app is JavaScript: its numbers are.
    this.frame.contentWindow?.postMessage(JSON.parse(JSON.stringify(message)), this.origin);
  }

  /** Hosts send nothing before the app is initialized. */
  private notify(method: string, params: JsonObject) {
    if (this.closed) return;
    if (this.facts.value.initialized) this.post({ jsonrpc: "2.0", method, params });
    else this.held.push([method, params]);
  }

  private receive(event: MessageEvent) {
    if (this.closed || event.source !== this.frame.contentWindow || event.origin !== this.origin || !isObject(event.data)) return;
    const now = Math.floor(event.timeStamp / 1000);
    if (now !== this.second) [this.second, this.count] = [now, 0];
    if (++this.count > MOST_PER_SECOND) {
      this.put({ flooded: true });
      this.end();
      this.frame.remove();
      return;
    }
    const message = event.data as JsonObject;
    const params = isObject(message.params) ? message.params : {};
    if (message.method === "ui/notifications/sandbox-proxy-ready") {
      this.put({ proxy: true });
      this.frame.contentWindow?.postMessage({ jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: {} }, this.origin);
      return;
    }
    if (message.method === "ui/notifications/sandbox-report") return this.report(params);
    let text: string | undefined;
    try {
      text = JSON.stringify(message);
    } catch {
      // No JSON has cycles or big integers.
    }
    if (text === undefined || text.length > LONGEST_TEXT) return this.add("others", text === undefined ? "a message without a JSON form" : `a message of ${text.length} characters`);
    this.host.passed(JSON.parse(text) as JsonObject, "from-app");
    if (typeof message.method !== "string") {
      const done = typeof message.id === "number" ? this.open.get(message.id) : undefined;
      if (done) {
        this.open.delete(message.id as number);
        done();
      }
    } else if (message.id === undefined) this.notified(message.method, params);
    else void this.asked(message.method, params).then(
      (result) => !this.closed && this.post({ jsonrpc: "2.0", id: message.id!, result }),
      (error: unknown) => {
        const refusal = error instanceof Refusal ? error : new Refusal(-32603, String((error as Error).message));
        this.add("refused", { method: message.method as string, why: refusal.message });
        if (!this.closed) this.post({ jsonrpc: "2.0", id: message.id!, error: { code: refusal.code, message: refusal.message, ...(refusal.data !== undefined ? { data: refusal.data } : {}) } });
      },
    );
  }

  private report(report: JsonObject) {
    const text = (value: Json | undefined) => (typeof value === "string" ? value.slice(0, 1000) : "");
    const number = (value: Json | undefined) => (typeof value === "number" ? value : 0);
    switch (report.kind) {
      case "frame-loaded": return this.put({ frame: true });
      case "drawn": return this.put({ drawn: { elements: number(report.elements), visible: report.visible === true, height: number(report.height), refused: report.refused === true } });
      case "script-error": return this.add("scriptErrors", { message: text(report.message), ...(typeof report.line === "number" && report.line > 0 ? { line: report.line } : {}) });
      case "blocked": return this.add("blocked", { directive: text(report.directive), url: text(report.url), late: this.facts.value.initialized });
      case "load-error": return this.add("loadErrors", { tag: text(report.tag), url: text(report.url), own: originOf(text(report.url)) === this.origin });
      case "other-message": return this.add("others", text(report.text));
      case "left": return this.add("left", text(report.url));
      case "reserved": return this.add("refused", { method: text(report.method), why: "the name is reserved for the sandbox" });
    }
  }

  private notified(method: string, params: JsonObject) {
    if (method === "ui/notifications/initialized") {
      if (!this.facts.value.initialize || this.facts.value.initialized) return;
      this.put({ initialized: true });
      for (const [method, params] of this.held.splice(0)) this.notify(method, params);
    } else if (method === "ui/notifications/size-changed") {
      if (typeof params.height === "number" && Number.isFinite(params.height)) this.put({ height: Math.max(0, Math.min(params.height, 4000)) });
    } else if (method === "ui/notifications/request-teardown") {
      void this.close("the app asked for it").then(() => this.frame.remove());
    } else if (method === "notifications/message") {
      this.add("logs", { level: String(params.level ?? "info").slice(0, 40), text: (typeof params.data === "string" ? params.data : JSON.stringify(params.data ?? null)).slice(0, 2000) });
    }
  }

  private async asked(method: string, params: JsonObject): Promise<JsonObject> {
    const { host } = this;
    switch (method) {
      case "ping": return {};
      case "ui/initialize": {
        this.put({ initialize: params });
        return { protocolVersion: VERSION, hostInfo: { name: "mcproof", version: host.version }, hostCapabilities: this.capabilities(), hostContext: this.context() };
      }
      case "tools/call": {
        const tool = host.tools().find((tool) => tool.name === params.name);
        if (!tool) throw new Refusal(-32602, `the server lists no tool ${String(params.name)}`);
        if (!isForApps(tool)) throw new Refusal(-32000, `the visibility of ${String(params.name)} does not include "app"`);
        return this.forward(method, params);
      }
      case "resources/read":
      case "resources/list":
      case "resources/templates/list": return this.forward(method, params);
      case "ui/open-link": {
        const url = typeof params.url === "string" ? params.url : "";
        if (!/^https?:\/\//i.test(url)) throw new Refusal(-32000, "only http and https links are opened");
        if (!(await host.openLink(url))) throw new Refusal(-32000, "the user refused to open the link");
        return {};
      }
      case "ui/message":
        this.add("messages", params);
        return {};
      case "ui/update-model-context":
        this.put({ context: params });
        return {};
      case "ui/request-display-mode": {
        const known = isObject(this.facts.value.initialize?.appCapabilities) ? this.facts.value.initialize.appCapabilities.availableDisplayModes : undefined;
        const { mode } = params;
        if ((mode === "inline" || mode === "fullscreen") && (!Array.isArray(known) || known.includes(mode))) host.setMode(mode);
        return { mode: host.context().displayMode };
      }
      default: throw new Refusal(-32601, `this host does not support ${method}`);
    }
  }

  private async forward(method: string, params: JsonObject): Promise<JsonObject> {
    const outcome = await this.host.request(method, params);
    if (outcome.result) return outcome.result;
    if (outcome.error) throw new Refusal(outcome.error.code, outcome.error.message, outcome.error.data);
    throw new Refusal(-32000, outcome.failure?.message ?? "the request was canceled");
  }

  private capabilities(): JsonObject {
    const csp = isObject(this.host.meta.csp) ? this.host.meta.csp : {};
    return { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} }, sandbox: { csp, permissions: isObject(this.host.meta.permissions) && this.host.meta.permissions.clipboardWrite !== undefined ? { clipboardWrite: {} } : {} } };
  }

  private context(): JsonObject {
    const { theme, width, displayMode } = this.host.context();
    return {
      theme, displayMode, availableDisplayModes: ["inline", "fullscreen"], containerDimensions: { width, maxHeight: 4000 },
      styles: { variables: VARIABLES }, locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, platform: "web",
      userAgent: `mcproof/${this.host.version}`, deviceCapabilities: { touch: navigator.maxTouchPoints > 0, hover: matchMedia("(hover: hover)").matches },
      safeAreaInsets: { top: 0, right: 0, bottom: 0, left: 0 }, ...(this.host.tool ? { toolInfo: { tool: this.host.tool } } : {}),
    };
  }
}

class Refusal extends Error {
  constructor(readonly code: number, message: string, readonly data?: Json) {
    super(message);
  }
}

const both = (light: string, dark: string) => `light-dark(${light}, ${dark})`;
const VARIABLES: JsonObject = {
  "--color-background-primary": both("#ffffff", "#15171c"), "--color-background-secondary": both("#f4f5f7", "#1b1e24"), "--color-background-tertiary": both("#e9ebef", "#23272f"),
  "--color-background-inverse": both("#15171c", "#ffffff"), "--color-background-info": both("#e7f0ff", "#16263f"), "--color-background-danger": both("#fdecec", "#3a1a1c"),
  "--color-background-success": both("#e6f6ec", "#143222"), "--color-background-warning": both("#fff4de", "#3a2c10"),
  "--color-text-primary": both("#1a1d23", "#e8eaee"), "--color-text-secondary": both("#5b616d", "#a0a7b4"), "--color-text-tertiary": both("#6b7280", "#8d94a1"),
  "--color-text-inverse": both("#ffffff", "#15171c"), "--color-text-info": both("#1d5bd6", "#7eabff"), "--color-text-danger": both("#c02626", "#ff8d8d"),
  "--color-text-success": both("#137a3f", "#63d297"), "--color-text-warning": both("#8a5a00", "#f0bd62"),
  "--color-border-primary": both("#d5d9e0", "#363b45"), "--color-border-secondary": both("#e5e8ec", "#2a2e36"), "--color-border-tertiary": both("#eff1f4", "#22252c"),
  "--color-border-inverse": both("#363b45", "#d5d9e0"), "--color-ring-primary": both("#4263eb", "#7e97ff"),
  "--font-sans": "system-ui, sans-serif", "--font-mono": "ui-monospace, monospace", "--font-weight-normal": "400", "--font-weight-medium": "500", "--font-weight-semibold": "600", "--font-weight-bold": "700",
  "--font-text-xs-size": "12px", "--font-text-sm-size": "13px", "--font-text-md-size": "14px", "--font-text-lg-size": "16px",
  "--border-radius-xs": "4px", "--border-radius-sm": "6px", "--border-radius-md": "8px", "--border-radius-lg": "12px", "--border-radius-full": "9999px", "--border-width-regular": "1px",
};
