// All that the page knows: what the program told, and where the user is.
import { batch, computed, effect, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { ApiError, get, post, stream } from "./api";
import { isObject, Tracker, type Call } from "./calls";
import { own, read, repeated, write } from "./lossless";
import { levelIn, listensTo, withLevel } from "./modern";
import { secretsIn } from "./schema";
import type { Answers } from "./answers";
import type { Connection, Frame, Handshake, Json, JsonObject, Outcome, Overview, Raw, TestCase } from "./types";

// ---- what the program tells

export const overview = signal<Overview | null>(null);
export const link = signal<"connecting" | "live" | "lost" | "denied" | "offline">("connecting");

export interface SessionData {
  id: number;
  frames: Map<number, Frame>;
  tracker: Tracker;
  last: number;
  stderr: Frame[];
  logs: Call[];
  /** Whether the server is a process of ours. */
  hasProcess: boolean;
  /** The end of the newest frame. */
  until: number;
  /** About how many bytes its frames have. */
  bytes: number;
}

export const sessions = new Map<number, SessionData>();
/** Changes when there are new frames to be drawn. */
export const frameVersion = signal(0);

/** A long session takes a while to draw: it is drawn less often while more of it comes. */
const LONG_SESSION = 5000;
let drawing = false;
function drawSoon(calls: number) {
  if (drawing) return;
  drawing = true;
  setTimeout(() => {
    drawing = false;
    frameVersion.value++;
  }, calls > LONG_SESSION ? 150 : 16);
}

/** Of all sessions that may grow: the program forgets the middle of a flood as well. */
const MOST_BYTES = 160 << 20;
/** Frames of a session that are kept, whatever is forgotten: the handshake and the lists. */
const FIRST_FRAMES = 400;

/** About how many bytes a frame and its call take. */
function sizeOf({ body }: Frame): number {
  const of = (raw: Raw | null | undefined) => (raw == null ? 0 : typeof raw === "string" ? raw.length : raw.base64.length);
  return 900 + ("bytes" in body ? of(body.bytes) : 0) + ("data" in body ? of(body.data) : 0) + ("body" in body ? of(body.body) : 0);
}

/** The room of a session; nothing for one that was recorded, which grows no more. */
function roomOf(id: number): number | undefined {
  const owner = overview.value?.connections.find((one) => one.sessions.some((session) => session.id === id));
  if (!owner || owner.status === "recorded") return undefined;
  return MOST_BYTES / Math.max(2, sessions.size);
}

/** Forgets the oldest frames and calls but the first ones. */
export function forget(data: SessionData, room: number) {
  let until = -1;
  let place = 0;
  for (const [id, frame] of data.frames) {
    if (data.bytes <= room) break;
    if (place++ < FIRST_FRAMES) continue;
    data.frames.delete(id);
    data.bytes -= sizeOf(frame);
    until = id;
  }
  data.tracker.forget(until);
  data.stderr = data.stderr.filter((frame) => data.frames.has(frame.id));
  data.logs = data.logs.filter((call) => data.tracker.find(call.key) === call);
}

function session(id: number): SessionData {
  let found = sessions.get(id);
  if (!found) {
    found = { id, frames: new Map(), tracker: new Tracker(id), last: -1, stderr: [], logs: [], hasProcess: false, until: 0, bytes: 0 };
    sessions.set(id, found);
  }
  return found;
}

export function takeFrames(id: number, frames: Frame[]) {
  const data = session(id);
  for (const frame of frames) {
    if (frame.id <= data.last) continue;
    data.last = frame.id;
    data.until = Math.max(data.until, frame.at_us);
    data.frames.set(frame.id, frame);
    data.bytes += sizeOf(frame);
    if (frame.body.kind === "spawned") data.hasProcess = true;
    if (frame.body.kind === "stderr" || frame.body.kind === "stdout") data.stderr.push(frame);
    const before = data.tracker.calls.length;
    data.tracker.push(frame);
    for (const call of data.tracker.calls.slice(before)) {
      if (call.method === "notifications/message") data.logs.push(call);
      if (call.direction === "from-server" && call.method.endsWith("/list_changed")) relist(id, call.method);
    }
  }
  const room = roomOf(id);
  // Some more than needed, so that it is not done with each frame.
  if (room !== undefined && data.bytes > room) forget(data, room * 0.8);
  drawSoon(data.tracker.calls.length);
}

/** Messages of apps are part of the traffic, with the time of the page; an app that never ends to talk does not fill the memory. */
const MOST_OF_APPS = 20_000;
let ofApps = 0;

export function recordApp(of: { id: number; openedMs: number }, message: JsonObject, direction: "to-app" | "from-app") {
  if (++ofApps > MOST_OF_APPS) return;
  const data = session(of.id);
  data.until = Math.max(data.until, (Date.now() - of.openedMs) * 1000);
  data.tracker.fromApp(message, direction === "to-app" ? "to-server" : "from-server", data.until);
  drawSoon(data.tracker.calls.length);
}

export function takeOverview(next: Overview) {
  const known = new Set(next.connections.flatMap((connection) => connection.sessions.map((session) => session.id)));
  for (const id of sessions.keys()) if (id >= 0 && !known.has(id)) sessions.delete(id);
  const before = overview.value;
  overview.value = next;
  if (selected.value == null || !next.connections.some((connection) => connection.id === selected.value)) {
    const open = next.connections.find((connection) => connection.status === "open") ?? next.connections[0];
    lookAt(open?.id ?? null);
  }
  if (awaited !== null && next.connections.some((connection) => connection.id === awaited)) selectNew(awaited);
  for (const connection of next.connections) {
    const old = before?.connections.find((old) => old.id === connection.id);
    const id = connection.sessions.at(-1)?.id;
    // A new session is what the user has asked for.
    if (connection.id === selected.value && old && old.sessions.at(-1)?.id !== id) earlier.value = null;
    if (connection.status === "open" && id !== undefined && catalogs.value.get(connection.id)?.session !== id) void loadCatalog(connection);
    const isSeen = connection.id === selected.value && view.value === "overview" && !story.value;
    if (old && !isSeen && old.status !== connection.status && (connection.status === "failed" || connection.status === "ended"))
      toast(`${connection.title}: ${connection.diagnostic?.message ?? connection.status}`, "error");
  }
}

/** Whether this is a file with recorded sessions, without a program behind it. */
export const isFile = document.getElementById("recorded") !== null;

/** Takes what stands in the page itself. */
export function takeRecorded() {
  const element = document.getElementById("recorded")!;
  const text = element.textContent!;
  element.remove();
  batch(() => {
    link.value = "offline";
    for (let at = 0; at < text.length; ) {
      const end = text.indexOf("\n", at) < 0 ? text.length : text.indexOf("\n", at);
      const written = text.slice(at, end);
      at = end + 1;
      if (written === "") continue;
      const line = JSON.parse(written) as JsonObject;
      if (line.type === "frames") takeFrames(line.session as number, line.frames as unknown as Frame[]);
      else takeOverview(line as unknown as Overview);
    }
  });
}

export async function follow() {
  for (let patience = 300; ; patience = Math.min(patience * 2, 5000)) {
    try {
      for await (const lines of stream(new AbortController().signal)) {
        patience = 300;
        batch(() => {
          link.value = "live";
          for (const line of lines) {
            if (line.type === "state") takeOverview(line as unknown as Overview);
            else if (line.type === "frames") takeFrames(line.session as number, line.frames as unknown as Frame[]);
          }
        });
      }
      link.value = "lost";
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        link.value = "denied";
        return;
      }
      link.value = "lost";
    }
    await new Promise((resolve) => setTimeout(resolve, patience));
  }
}

// ---- where the user is

export type View = "overview" | "tools" | "prompts" | "resources" | "tasks" | "logs" | "answers" | "check" | "compare" | "saved" | "connect";

export const selected = signal<number | null>(null);
export const view = signal<View>("overview");
/** The tool, prompt or URI that is looked at, by view. */
export const item = signal<Partial<Record<View, string>>>({});
/** The call whose story is shown. */
export const story = signal<{ session: number; key: number } | null>(null);
/** The call that another one is compared with. */
export const compared = signal<{ session: number; key: number } | null>(null);
export const pane = signal<"side" | "main" | "traffic">("main");
/** Whether one pane fills the window, as the style sheet has it. */
const narrowWindow = matchMedia("(max-width: 720px)");
export const isNarrow = signal(narrowWindow.matches);
narrowWindow.addEventListener("change", (event) => (isNarrow.value = event.matches));
export const paletteOpen = signal(false);
/** The connection whose command or URL is edited in the form for a new one. */
export const edited = signal<number | null>(null);
/** A page that is a file may have no storage. */
function kept(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}
function keep(key: string, value: string) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // It is forgotten with the page.
  }
}

export const trafficOpen = signal(kept("mcproof-traffic") !== "closed");
export const trafficWidth = signal(Number(kept("mcproof-traffic-width")) || 440);
export const filterText = signal("");
/** A span of time that is looked at, in microseconds of the session. */
export const brush = signal<[number, number] | null>(null);
export const theme = signal<"auto" | "light" | "dark">((kept("mcproof-theme") as "light" | "dark" | null) ?? "auto");

/** Changes when the system's light turns dark. */
export const systemDark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => (systemDark.value = event.matches));

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  keep("mcproof-theme", theme.value);
});
effect(() => keep("mcproof-traffic", trafficOpen.value ? "open" : "closed"));
effect(() => keep("mcproof-traffic-width", String(trafficWidth.value)));

export const connection = computed<Connection | null>(() => (overview.value?.tests ? ofTest.value : null) ?? overview.value?.connections.find((one) => one.id === selected.value) ?? null);
export const handshake = computed(() => connection.value?.sessions.at(-1)?.handshake ?? recordedNow(recordedHandshake) ?? null);

/** Of a recorded session, what its frames show so far: they may still be coming. */
function recordedNow<T>(of: (session: SessionData) => T): T | undefined {
  if (connection.value?.status !== "recorded") return undefined;
  frameVersion.value;
  return currentSession.value && of(currentSession.value);
}
/** The session that is looked at instead of the newest one of its connection. */
export const earlier = signal<number | null>(null);
export const shownSession = computed(() => {
  const all = connection.value?.sessions ?? [];
  return all.find((one) => one.id === earlier.value) ?? all.at(-1);
});
export const currentSession = computed(() => {
  frameVersion.value;
  const id = shownSession.value?.id;
  return id === undefined ? undefined : sessions.get(id);
});

/** A connection that was asked for, of which the program has not told yet. */
let awaited: number | null = null;

/** Shows a new connection as soon as the program tells of it; until then, there is nothing to show. */
export function selectNew(id: number) {
  if (!overview.value?.connections.some((connection) => connection.id === id)) return void (awaited = id);
  select(id);
  go("overview");
}

const itemsOf = new Map<number, Partial<Record<View, string>>>();

/** Makes this the server that is looked at. Each has a tool, prompt and resource of its own; a comparison is of any two. */
export function lookAt(id: number | null) {
  const before = selected.peek();
  if (before === id) return;
  batch(() => {
    if (before !== null) itemsOf.set(before, item.peek());
    const { compare } = item.peek();
    item.value = { ...(id === null ? {} : itemsOf.get(id)), ...(compare === undefined ? {} : { compare }) };
    earlier.value = null;
    selected.value = id;
  });
}

export function select(id: number) {
  awaited = null;
  batch(() => {
    lookAt(id);
    story.value = null;
    brush.value = null;
    if (view.value === "connect") view.value = "overview";
  });
}

export function go(to: View, what?: string) {
  batch(() => {
    edited.value = null;
    view.value = to;
    story.value = null;
    if (what !== undefined) item.value = { ...item.value, [to]: what };
    pane.value = "main";
  });
}

export function tell(call: Call) {
  batch(() => {
    story.value = { session: call.session, key: call.key };
    pane.value = "main";
  });
}

// ---- tests

export interface TestDetails {
  id: number;
  ended: number;
  finished: JsonObject;
  /** It had traffic, which made room for that of other tests. */
  dropped: boolean;
}
export const shownTest = signal<number | null>(null);
export const testDetails = signal<TestDetails | null>(null);
/** The sessions of the test that is looked at, each as if it were a recorded server. */
export const testSessions = signal<Connection[]>([]);
export const testSession = signal(0);
const ofTest = computed<Connection | null>(() => testSessions.value[testSession.value] ?? null);

export async function openTest(test: TestCase) {
  batch(() => {
    // What an earlier run has found says nothing of the one that is under way.
    if (shownTest.value !== test.id || test.ended === 0) {
      testDetails.value = null;
      testSessions.value = [];
      story.value = null;
      brush.value = null;
    }
    shownTest.value = test.id;
  });
  if (test.ended === 0) return;
  const { ended, finished, transcripts, dropped } = await get<{ ended: number; finished: JsonObject; dropped: boolean; transcripts: { server: string; transcript: { frames: Frame[] } }[] | null }>(`tests/${test.id}`);
  // What was asked for later may have come before.
  if (shownTest.value !== test.id || ended === 0 || (testDetails.value?.id === test.id && testDetails.value.ended >= ended)) return;
  batch(() => {
    for (const one of testSessions.value) sessions.delete(one.id);
    story.value = null;
    brush.value = null;
    const spec = { name: "", server: null, config: null, command: [], url: null, env: [], headers: [], withoutEnv: [], withoutHeaders: [], clientId: null, clientSecret: null, scope: null, cwd: null, roots: [], transport: test.transport, era: null, revision: null };
    testSessions.value = (transcripts ?? []).map(({ server, transcript }, index) => {
      // Below zero, where no session of the program is.
      const id = -(test.id * 100 + index + 1);
      sessions.delete(id);
      takeFrames(id, transcript.frames);
      return { id, title: server, spec, status: "recorded", diagnostic: null, sessions: [{ id, openedMs: 0, handshake: null }] };
    });
    testSession.value = 0;
    testDetails.value = { id: test.id, ended, finished, dropped };
  });
}

// ---- what a server offers

export interface List {
  items: JsonObject[];
  state: "idle" | "loading" | "ready" | "failed";
  error?: string;
  /** How many pages were read, and the cursor of the next one. */
  pages?: number;
  next?: string;
}
export interface Catalog {
  session: number;
  tools: List;
  prompts: List;
  resources: List;
  templates: List;
}
export type ListName = "tools" | "prompts" | "resources" | "templates";

export const catalogs = signal(new Map<number, Catalog>());
export const catalog = computed(() => {
  if (selected.value == null) return undefined;
  const known = catalogs.value.get(selected.value);
  return known ?? recordedNow(recordedCatalog);
});

function resultsOf(session: SessionData, ...methods: string[]): { call: Call; result: JsonObject }[] {
  return session.tracker.calls.filter((call) => methods.includes(call.method) && call.direction === "to-server" && call.response !== undefined).flatMap((call) => {
    const message: unknown = read(call.response!);
    return isObject(message) && isObject(message.result) ? [{ call, result: message.result }] : [];
  });
}

/** What the server of a recorded session said of itself in it. */
function recordedHandshake(session: SessionData): Handshake | null {
  const found = resultsOf(session, "initialize", "server/discover").at(-1);
  if (!found) return null;
  const { call, result } = found;
  const modern = call.method === "server/discover";
  const asked = read(call.request) as JsonObject;
  const meta = isObject(asked.params) && isObject(asked.params._meta) ? asked.params._meta : {};
  const own = isObject(result._meta) ? result._meta : {};
  const info = result.serverInfo ?? own["io.modelcontextprotocol/serverInfo"];
  return {
    era: modern ? "modern" : "legacy", transport: connection.value?.spec.transport ?? (call.http ? "http" : "stdio"),
    protocolVersion: String((modern ? meta["io.modelcontextprotocol/protocolVersion"] : result.protocolVersion) ?? ""),
    capabilities: isObject(result.capabilities) ? result.capabilities : {}, ...(isObject(info) ? { serverInfo: info } : {}),
    ...(typeof result.instructions === "string" ? { instructions: result.instructions } : {}),
  };
}

/** What the server of a recorded session listed in it. */
function recordedCatalog(session: SessionData): Catalog {
  const list = (name: ListName): List => {
    const items = new Map<string, JsonObject>();
    for (const { result } of resultsOf(session, LISTS[name].method)) {
      const listed = result[LISTS[name].key];
      if (Array.isArray(listed)) for (const one of listed.filter(isObject)) items.set(String(one.name ?? one.uri ?? one.uriTemplate), one);
    }
    return { items: [...items.values()], state: "ready" };
  };
  return { session: session.id, tools: list("tools"), prompts: list("prompts"), resources: list("resources"), templates: list("templates") };
}

const LISTS: Record<ListName, { method: string; key: string; capability: string }> = {
  tools: { method: "tools/list", key: "tools", capability: "tools" },
  prompts: { method: "prompts/list", key: "prompts", capability: "prompts" },
  resources: { method: "resources/list", key: "resources", capability: "resources" },
  templates: { method: "resources/templates/list", key: "resourceTemplates", capability: "resources" },
};

function putList(id: number, name: ListName, list: List) {
  const known = catalogs.value.get(id);
  if (!known) return;
  const next = new Map(catalogs.value);
  next.set(id, { ...known, [name]: list });
  catalogs.value = next;
}

async function loadCatalog(connection: Connection) {
  const empty: List = { items: [], state: "idle" };
  const session = connection.sessions.at(-1)!;
  const next = new Map(catalogs.value);
  next.set(connection.id, { session: session.id, tools: empty, prompts: empty, resources: empty, templates: empty });
  catalogs.value = next;
  const declared = session.handshake?.capabilities ?? {};
  for (const name of Object.keys(LISTS) as ListName[]) if (LISTS[name].capability in declared) void loadList(connection.id, name);
}

/** Pages that are read by themselves; further ones with a click. */
const PAGES_AT_ONCE = 100;

/** Reads a list: all its pages, or `one` of them. It goes on `from` a cursor, or begins anew. */
export async function loadList(id: number, name: ListName, reading: { one?: boolean; from?: string } = {}) {
  const { method, key } = LISTS[name];
  const before = catalogs.value.get(id)?.[name] ?? { items: [], state: "idle" };
  const session = catalogs.value.get(id)?.session;
  const known = new Set<string>();
  let next = reading.from;
  let [items, pages] = next === undefined ? [[] as JsonObject[], 0] : [before.items, before.pages ?? 0];
  // What was listed before stays until there is something else.
  const put = (list: Partial<List>) => catalogs.value.get(id)?.session === session && putList(id, name, { items: pages > 0 ? items : before.items, pages, ...list, state: list.state ?? "loading" });
  const failed = (error: string) => put({ state: "failed", error, next });
  put({});
  try {
    for (let read = 1; ; read++) {
      const outcome = await request(id, method, next === undefined ? undefined : { cursor: next }, { pageOf: key, timeoutMs: 60_000 });
      const page = outcome.result?.[key];
      if (!Array.isArray(page)) return void failed(outcome.error?.message ?? outcome.failure?.message ?? "no list in the response");
      items = [...items, ...page.filter(isObject)];
      pages++;
      const cursor = outcome.result?.nextCursor;
      if (typeof cursor !== "string") return void put({ state: "ready", next: undefined });
      if (known.has(cursor) || cursor === next) return void failed(`the server returned the cursor ${JSON.stringify(cursor)} twice: its pages never end`);
      known.add(cursor);
      next = cursor;
      if (reading.one || read >= PAGES_AT_ONCE) return void put({ state: "ready", next });
      if (catalogs.value.get(id)?.session !== session) return;
      put({ next });
    }
  } catch (error) {
    failed(String((error as Error).message));
  }
}

const waiting = new Map<string, ReturnType<typeof setTimeout>>();

/** A server that announces changes one after another is asked once. */
function relist(session: number, method: string) {
  const owner = overview.value?.connections.find((one) => one.status === "open" && one.sessions.at(-1)?.id === session);
  if (!owner) return;
  const names: ListName[] = method.includes("tools") ? ["tools"] : method.includes("prompts") ? ["prompts"] : method.includes("resources") ? ["resources", "templates"] : [];
  for (const name of names) {
    const key = `${owner.id} ${name}`;
    clearTimeout(waiting.get(key));
    waiting.set(key, setTimeout(() => void loadList(owner.id, name), 400));
  }
}

/** What came of asking a server for its tasks; the tasks themselves are in the traffic. */
export const tasksListed = signal<{ connection: number; error?: string } | null>(null);
export async function loadTasks(id: number) {
  try {
    const outcome = await request(id, "tasks/list", undefined, { allPagesOf: "tasks", timeoutMs: 60_000 });
    tasksListed.value = { connection: id, error: outcome.error?.message ?? outcome.failure?.message };
  } catch (error) {
    tasksListed.value = { connection: id, error: (error as Error).message };
  }
}

/** Draws anew a few times a second while something goes on whose time is shown. */
export function useTick(running: boolean) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => tick((value) => value + 1), 250);
    return () => clearInterval(timer);
  }, [running]);
}

// ---- requests

let nextKey = 0;
export const newKey = () => `${Date.now().toString(36)}-${++nextKey}`;

export function request(
  id: number, method: string, params?: JsonObject, options: { key?: string; allPagesOf?: string; pageOf?: string; timeoutMs?: number; task?: JsonObject } = {},
): Promise<Outcome> {
  const { key = newKey(), ...rest } = options;
  const session = overview.value?.connections.find((one) => one.id === id)?.sessions.at(-1);
  const level = session?.handshake?.era === "modern" ? (levels.value.get(session.id) ?? requestedLevel(sessions.get(session.id))) : undefined;
  const sent = level && !rest.allPagesOf && !rest.pageOf ? withLevel(params, level) : params;
  const secrets = method === "tools/call" && isObject(sent?.arguments) ? secretsIn(sent.arguments, inputSchema(id, String(sent.name))) : [];
  return post<Outcome>(`connections/${id}/request`, { method, ...(sent ? { params: sent } : {}), key, ...rest, ...(secrets.length > 0 ? { secrets } : {}) });
}

/** The schema of the arguments of a tool, by the list of its server. */
function inputSchema(id: number, tool: string): JsonObject {
  const schema = catalogs.peek().get(id)?.tools.items.find((one) => one.name === tool)?.inputSchema;
  return isObject(schema) ? schema : {};
}

/** The same in a session, which may be a recorded one. */
export function inputSchemaIn(session: number, tool: string): JsonObject {
  const owner = overview.peek()?.connections.find((one) => one.sessions.some(({ id }) => id === session));
  const live = owner ? inputSchema(owner.id, tool) : {};
  const data = sessions.get(session);
  if (Object.keys(live).length > 0 || !data) return live;
  const schema = recordedCatalog(data).tools.items.find((one) => one.name === tool)?.inputSchema;
  return isObject(schema) ? schema : {};
}

/** The level that log messages are requested from, by session: in the modern era, each request says it. Nothing for none. */
export const levels = signal(new Map<number, string>());
export const setRequestedLevel = (session: number, level: string) => (levels.value = new Map(levels.value).set(session, level));

export const cancel = (id: number, key: string) => post(`connections/${id}/cancel`, { key });

// ---- what is under way and what came of it, by connection and item

export interface Run {
  key: string;
  startedAt: number;
  outcome?: Outcome;
  refused?: string;
  method: string;
  params: JsonObject;
  asTask?: boolean;
}
export const runs = signal(new Map<string, Run>());
export const drafts = signal(new Map<string, Json>());
/** The tools that are to run as tasks, by slot. */
export const asTask = signal(new Map<string, boolean>());

const put = <V>(map: { value: Map<string, V> }, key: string, value: V) => {
  const next = new Map(map.value);
  next.set(key, value);
  map.value = next;
};
export const setAsTask = (slot: string, value: boolean) => put(asTask, slot, value);
/** What is typed as JSON and is not valid yet, by slot. */
export const draftTexts = signal(new Map<string, string>());
export function setDraftText(slot: string, text: string | null) {
  forgetRefusal(slot);
  const next = new Map(draftTexts.value);
  if (text === null) next.delete(slot);
  else next.set(slot, text);
  draftTexts.value = next;
}
export function setDraft(slot: string, value: Json) {
  forgetRefusal(slot);
  put(drafts, slot, value);
}

/** What mcproof did not send is of no interest once it is another text. */
function forgetRefusal(slot: string) {
  if (runs.peek().get(slot)?.refused === undefined) return;
  const next = new Map(runs.peek());
  next.delete(slot);
  runs.value = next;
}

/** Whether its response has not come yet. */
export const isUnderWay = (run: Run | undefined): boolean => run !== undefined && !run.outcome && run.refused === undefined;

/** Sends what a slot has; nothing while what it sent before is under way, which one button cancels. */
export async function run(slot: string, id: number, method: string, params: JsonObject, task?: JsonObject): Promise<Run> {
  const before = runs.value.get(slot);
  if (before && isUnderWay(before)) return before;
  const started: Run = { key: newKey(), startedAt: performance.now(), method, params, asTask: task !== undefined };
  put(runs, slot, started);
  let ended: Run;
  try {
    ended = { ...started, outcome: await request(id, method, params, { key: started.key, ...(task ? { task } : {}) }) };
  } catch (error) {
    ended = { ...started, refused: (error as Error).message };
  }
  if (runs.value.get(slot)?.key === started.key) put(runs, slot, ended);
  return ended;
}

/** The call of a run, once its frames are here. */
export function callOf(outcome: Outcome): Call | undefined {
  const calls = sessions.get(outcome.session)?.tracker.calls ?? [];
  const frame = outcome.requestFrame ?? outcome.frame;
  for (let index = calls.length - 1; index >= 0; index--) if (calls[index]!.kind === "request" && calls[index]!.frames.includes(frame!)) return calls[index];
  return undefined;
}

/** Shows the call of an outcome as soon as its frames are here, unless the user has gone elsewhere. */
export async function showCallOf(outcome: Outcome, from: { session: number; key: number } | null) {
  for (let patience = 100; patience > 0; patience--) {
    const call = callOf(outcome);
    if (story.value !== from) return;
    if (call && call.end !== undefined) return void (story.value = { session: call.session, key: call.key });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The last call of a kind in a session that ended well, with the parameters that fit. */
export function lastCall(session: SessionData | undefined, fits: (call: Call) => boolean): Call | undefined {
  return session?.tracker.calls.findLast((call) => call.kind === "request" && call.direction === "to-server" && !call.app && call.status === "ok" && fits(call));
}

/** The level that the server was asked to log from, in the session that is looked at. */
export function logLevel(session: SessionData | undefined, era: "legacy" | "modern" = "legacy"): string | undefined {
  if (era === "modern") return session && (levels.value.get(session.id) ?? requestedLevel(session));
  return lastCall(session, (call) => call.method === "logging/setLevel")?.target;
}

/** What the last call said, in the modern era: the page may have been loaded again since. */
function requestedLevel(session: SessionData | undefined): string | undefined {
  const last = session?.tracker.calls.findLast((call) => call.kind === "request" && call.direction === "to-server" && !call.app && ["tools/call", "resources/read", "prompts/get"].includes(call.method));
  return last && levelIn(read(last.request));
}

/** Whether a resource is subscribed to, and what the server told of it since. `open` has those with an open stream, where that is known. */
export function subscriptionOf(session: SessionData | undefined, uri: string, open?: string[]): { subscribed: boolean; updates: Call[] } {
  const last = session?.tracker.calls.findLast((call) => call.kind === "request" && call.direction === "to-server" && !call.app && (call.method === "subscriptions/listen" ? listensTo(call.request, uri) : call.status === "ok" && (call.method === "resources/subscribe" || call.method === "resources/unsubscribe") && call.target === uri));
  if (!session || !last || !(last.method === "subscriptions/listen" ? (open?.includes(uri) ?? last.status === "pending") : last.method === "resources/subscribe")) return { subscribed: false, updates: [] };
  return { subscribed: true, updates: session.tracker.calls.filter((call) => call.key > last.key && call.method === "notifications/resources/updated" && call.target === uri) };
}

/** The names that stand more than once in one object of the response, once its frames are here. */
export function repeatedIn(outcome: Outcome): string[] {
  const call = outcome.result || outcome.error ? callOf(outcome) : undefined;
  if (call?.response === undefined || !call.frames.includes(outcome.frame!)) return [];
  const known = twiceIn.get(outcome) ?? repeated(call.response);
  twiceIn.set(outcome, known);
  return known;
}

const twiceIn = new WeakMap<Outcome, string[]>();
const asReceived = new WeakMap<Outcome, Outcome>();

/** An outcome with its result as it stands in the traffic: numbers as the server wrote them, which mcproof reads with 64 bits. */
export function received(outcome: Outcome): Outcome {
  const known = asReceived.get(outcome);
  if (known) return known;
  const call = outcome.task === undefined && (outcome.result || outcome.error) ? callOf(outcome) : undefined;
  if (call?.response === undefined || !call.frames.includes(outcome.frame!)) return outcome;
  const message = read(call.response);
  if (!isObject(message)) return outcome;
  const whole = isObject(message.result) && outcome.result ? { ...outcome, result: message.result } : isObject(message.error) && outcome.error && message.error.data !== undefined ? { ...outcome, error: { ...outcome.error, data: message.error.data } } : outcome;
  asReceived.set(outcome, whole);
  return whole;
}

// ---- what takes a while, and goes on while the user looks at something else

export interface Job<T> {
  running: boolean;
  done?: T;
  wrong?: string;
}
const jobs = signal(new Map<string, Job<unknown>>());
export const jobOf = <T>(key: string) => (jobs.value.get(key) ?? { running: false }) as Job<T>;

export async function startJob<T>(key: string, work: () => Promise<T>) {
  const before = jobOf<T>(key);
  if (before.running) return;
  put(jobs, key, { running: true, done: before.done });
  try {
    put(jobs, key, { running: false, done: await work() });
  } catch (error) {
    put(jobs, key, { running: false, done: before.done, wrong: (error as Error).message });
  }
}

// ---- messages that go away

export const toasts = signal<{ id: number; text: string; kind: "info" | "error" }[]>([]);
let nextToast = 0;
export function toast(text: string, kind: "info" | "error" = "info") {
  const id = ++nextToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }];
  setTimeout(() => (toasts.value = toasts.value.filter((one) => one.id !== id)), kind === "error" ? 9000 : 3500);
}

// ---- check

export interface Findings {
  findings: { rule: string; requirement: string; finding: import("./types").Finding }[];
  pages: JsonObject[];
}
export const findings = signal(new Map<number, Findings>());
export async function judge(session: number) {
  const found = await get<Findings>(`sessions/${session}/findings`);
  const next = new Map(findings.value);
  next.set(session, found);
  findings.value = next;
}

// ---- saved calls

export interface Failed {
  code?: number;
  text?: string;
  /** There is more than `text`. */
  partly?: boolean;
}

export interface Step {
  title: string;
  /** Which server it is of; see `serverKey`. */
  server?: string;
  /** What that server is called. */
  serverTitle?: string;
  method: string;
  params: JsonObject;
  /** The payload that came, for the expectation. */
  payload?: Json;
  /** What the raw result must be, where there is no payload. */
  result?: Json;
  failed?: boolean;
  /** It failed with a JSON-RPC error, and without a result. */
  refused?: boolean;
  /** How it failed: what of the text is the same next time, and whether that is all of it; the code of a JSON-RPC error. */
  error?: Failed;
  /** It ran as a task. */
  task?: boolean;
  /** What the client responded to the requests of the server meanwhile. */
  answers?: Answers;
  /** The step as `trace export --suite` writes it, where the program has: what it does comes first. */
  written?: JsonObject;
  /** The `answers` of a test with such steps. */
  beside?: JsonObject;
}

/** What the program makes of a session. */
export interface SessionSteps {
  steps: JsonObject[];
  answers: JsonObject | null;
  leftOut: { [why: string]: number };
  uncompared: string[];
  stale: string[];
}

const ACTIONS: Record<string, string> = { call: "tools/call", read: "resources/read", prompt: "prompts/get", tools: "tools/list", prompts: "prompts/list", resources: "resources/list", templates: "resources/templates/list", complete: "completion/complete", subscribe: "resources/subscribe", unsubscribe: "resources/unsubscribe" };

/** Steps of a session, as they are kept. */
export function stepsOf({ steps, answers }: SessionSteps): Step[] {
  return steps.map((written) => {
    const [action, what] = Object.entries(written)[0] ?? ["raw", null];
    const method = own(ACTIONS, action) ?? (isObject(what) && typeof what.method === "string" ? what.method : action);
    const title = typeof what === "string" ? what : method;
    const failed = written.tool_error !== undefined || written.rpc_error !== undefined;
    const params: JsonObject = typeof what === "string" ? { [action === "call" || action === "prompt" ? "name" : "uri"]: what, ...(isObject(written.with) ? { arguments: written.with } : {}) } : isObject(what) ? what : {};
    return { title, method, params, ...(failed ? { failed } : {}), written, ...(answers && Object.keys(answers).length > 0 ? { beside: answers } : {}) };
  });
}

/** Variables that a step uses and that no step before it saves: the one that did was removed. */
export function unsaved(steps: Step[]): string[] {
  const saved = new Set<string>();
  const missing = new Set<string>();
  for (const { written } of steps) {
    if (!written) continue;
    const { save, ...rest } = written;
    for (const [, name] of write(rest).matchAll(/(?<!\$)\$\{([A-Za-z_]\w*)\}/g)) if (!saved.has(name!) && !["port", "tmp", "n"].includes(name!)) missing.add(name!);
    if (isObject(save)) for (const name of Object.keys(save)) saved.add(name);
  }
  return [...missing];
}
export const steps = signal<Step[]>(readSteps());
function readSteps(): Step[] {
  try {
    const parsed: unknown = read(kept("mcproof-steps") ?? "[]");
    return Array.isArray(parsed) ? (parsed as Step[]) : [];
  } catch {
    return [];
  }
}

/** What a server is recognized by in saved steps, also after the next start. */
export function serverKey({ spec }: Connection): string {
  return write([spec.name, spec.server, spec.config, spec.url, spec.command, spec.cwd, spec.env.map(([name]) => name)]);
}

/** The steps of the server that is shown; those that say nothing are of an earlier version, and of any server. */
export const stepsHere = computed(() => {
  const key = connection.value ? serverKey(connection.value) : undefined;
  return steps.value.filter((step) => step.server === undefined || step.server === key);
});

effect(() => keep("mcproof-steps", write(steps.value)));
