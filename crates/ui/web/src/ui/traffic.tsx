// What goes over the wire, as a timeline and a list, with one filter for both.
import { batch, useComputed } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { save } from "../lib/api";
import { isFailure, type Call } from "../lib/calls";
import { FilterError, parse, type Filter } from "../lib/filter";
import { brush, compared, connection, currentSession, earlier, filterText, frameVersion, go, handshake, isFile, isNarrow, shownSession, story, systemDark, tell, theme, toast, type SessionData } from "../lib/store";
import { LANES, laneOf, type Lane } from "../lib/lanes";
import { moved } from "../lib/span";
import { isOver, type Task } from "../lib/tasks";
import { clock, count, duration, visible } from "../lib/text";
import { Button, Empty, Icon, Menu, Rows } from "./basics";

function useFilter(): { filter: Filter | null; mistake: FilterError | null } {
  const text = filterText.value;
  return useMemo(() => {
    if (text.trim() === "") return { filter: null, mistake: null };
    try {
      return { filter: parse(text), mistake: null };
    } catch (mistake) {
      return { filter: null, mistake: mistake as FilterError };
    }
  }, [text]);
}

export function shownCalls(session: SessionData, filter: Filter | null, span: [number, number] | null, about: { server?: string; transport?: string }): Call[] {
  const calls = session.tracker.calls;
  if (!filter && !span) return calls.slice();
  return calls.filter((call) => (!span || (call.start <= span[1] && (call.end ?? Infinity) >= span[0])) && (!filter || filter(call, about)));
}

export function Traffic() {
  const session = currentSession.value;
  const version = frameVersion.value;
  const { filter, mistake } = useFilter();
  const span = brush.value;
  const about = { server: connection.value?.title, transport: handshake.value?.transport };
  const calls = useMemo(() => (session ? shownCalls(session, filter, span, about) : []), [session, version, filter, span]);
  const at = useComputed(() => story.value).value;
  const current = at && session && at.session === session.id ? calls.findIndex((call) => call.key === at.key) : -1;
  const dropped = session && session.frames.size > 0 ? session.last + 1 - session.frames.size : 0;
  return (
    <div class="traffic" data-testid="traffic">
      <div class="traffic-head">
        <div class={`filter ${mistake ? "bad" : ""}`}>
          <Icon name="search" size={14} />
          <input type="search" value={filterText.value} placeholder="Filter: method:tools/* status:error at:>1.2s" aria-label="Filter the traffic" spellcheck={false} data-testid="filter"
            aria-invalid={mistake !== null} aria-describedby={mistake ? "filter-mistake" : undefined} onInput={(event) => (filterText.value = event.currentTarget.value)} />
        </div>
        {mistake && <p class="mistake" id="filter-mistake" role="alert"><code>{" ".repeat(Math.min(mistake.column, 60))}{"^".repeat(Math.min(mistake.length, 40))}</code>{mistake.message}{mistake.hint && <span class="muted">; {mistake.hint}</span>}</p>}
      </div>
      <Sessions />
      {session && <Timeline session={session} calls={calls} version={version} />}
      <div class="traffic-count small muted"><span aria-live="polite">{count(calls.length, "call")}{(filter || span) && session ? ` of ${session.tracker.calls.length}` : ""}</span>{dropped > 0 && <span>{count(dropped, "earlier frame")} not kept</span>}<span class="grow" />{span && <button type="button" class="link small" onClick={() => (brush.value = null)}>clear time range</button>}{compared.value && <button type="button" class="link small" onClick={() => (compared.value = null)}>end comparison</button>}</div>
      {!session || session.tracker.calls.length === 0 ? <Empty icon="activity" title="No traffic yet">Requests, notifications and HTTP exchanges appear here as they happen.</Empty> : (
        <Rows items={calls} height={28} label="Calls" testid="calls" current={current} follow={!filter && connection.value?.status !== "recorded"} onMove={(index) => tell(calls[index]!)} row={(call) => <CallRow call={call} />} />
      )}
    </div>
  );
}

/** Which session of the server is shown, where there were several. */
function Sessions() {
  const all = connection.value?.sessions ?? [];
  const newest = all.at(-1);
  if (!newest || all.length < 2) return null;
  const shown = currentSession.value?.id ?? newest.id;
  const choose = (id: number) => batch(() => {
    earlier.value = id === newest.id ? null : id;
    brush.value = null;
    story.value = null;
  });
  return (
    <div class="traffic-count small">
      <label class="inline">Session<select data-testid="sessions" value={String(shown)} onChange={(event) => choose(Number(event.currentTarget.value))}>
        {all.map((one, index) => <option key={one.id} value={String(one.id)} selected={one.id === shown}>{one === newest ? "newest" : `${index + 1} of ${all.length}`}, begun {new Date(one.openedMs).toLocaleTimeString("en-GB")}</option>)}
      </select></label>
      {shown !== newest.id && <button type="button" class="link small" onClick={() => choose(newest.id)}>show the newest</button>}
    </div>
  );
}

export const STATUS_TEXT: Record<string, string> = {
  pending: "…", ok: "ok", "input-required": "input", "tool-error": "tool error", "rpc-error": "error", "http-error": "HTTP error", canceled: "canceled", "no-response": "no response",
};

function CallRow({ call }: { call: Call }) {
  const failed = isFailure(call);
  // Each part has its own look: a row is used again for another call, and what hangs on a class around it is drawn late.
  const look = failed ? "bad" : call.kind === "notification" || call.kind === "http" ? "muted" : "";
  return (
    <div class={`call ${failed ? "bad" : ""}`} data-status={call.status}>
      <span class="call-time">{clock(call.start)}</span>
      <span class={`call-way ${call.direction}`}><Icon name={call.direction === "to-server" ? "out" : "in"} size={13} /></span>
      <span class="call-name">{call.app && <span class="call-target muted">app</span>}{call.policies && <span class="call-target muted" data-testid="policy-mark">policy</span>}<span class={`call-method ${look}`}>{visible(call.method)}</span>{call.target && <span class={failed ? "bad" : "muted"}>{visible(call.target)}</span>}</span>
      <span class="call-status">{call.fellBack ? "legacy" : call.status === "canceled" ? "canceled" : call.kind === "notification" && !failed ? "" : call.code ?? call.http?.status?.toString().replace(/^2\d\d$/, "") ?? ""}</span>
      <span class="call-duration">{call.kind === "notification" ? "" : call.status === "pending" ? "…" : call.end !== undefined ? duration(call.end - call.start) : ""}</span>
    </div>
  );
}

/** The colors of lanes; those of HTTP for the others. */
const COLORS: Partial<Record<Lane, string>> = { requests: "--accent", "from server": "--server", notifications: "--note", streams: "--server", authorization: "--key", apps: "--key" };
const LANE = 15;
const HEAD = 18;

/** Time with its idle stretches made short, so that minutes of reading do not hide milliseconds of traffic. */
export class Axis {
  private points: [number, number][] = [];
  length: number;
  constructor(spans: [number, number][], until: number) {
    const sorted = [...spans].sort((one, other) => one[0] - other[0]);
    const busy: [number, number][] = [];
    for (const [begin, end] of sorted) {
      const last = busy.at(-1);
      if (last && begin - last[1] < 20_000) last[1] = Math.max(last[1], end);
      else busy.push([begin, end]);
    }
    const total = busy.reduce((sum, [begin, end]) => sum + Math.max(end - begin, 500), 0) || 1;
    const gap = Math.max(total * 0.04, 400);
    let at = 0;
    this.points.push([0, 0]);
    let before = 0;
    for (const [begin, end] of busy) {
      at += Math.min(Math.max(0, begin - before), gap);
      this.points.push([begin, at]);
      at += Math.max(end - begin, 500);
      this.points.push([Math.max(end, begin + 1), at]);
      before = end;
    }
    at += Math.min(Math.max(0, until - before), gap);
    this.points.push([Math.max(until, before + 1), at]);
    this.length = at || 1;
  }
  /** From 0 to 1. */
  place(time: number): number {
    return this.map(time, 0, 1) / this.length;
  }
  time(place: number): number {
    return this.map(place * this.length, 1, 0);
  }
  private map(value: number, from: 0 | 1, to: 0 | 1): number {
    const points = this.points;
    let low = 0;
    let high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle]![from] <= value) low = middle;
      else high = middle;
    }
    const [one, other] = [points[low]!, points[high]!];
    const width = other[from] - one[from];
    return one[to] + (width <= 0 ? 0 : (Math.min(Math.max(value - one[from], 0), width) / width) * (other[to] - one[to]));
  }
}

/** Short enough to stand beside its neighbors. */
function tickText(time: number): string {
  const seconds = Math.round(time / 1e6);
  return seconds < 60 ? duration(time) : `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function Timeline({ session, calls, version }: { session: SessionData; calls: Call[]; version: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [hover, setHover] = useState<Call | null>(null);
  const until = session.until;
  const axis = useMemo(() => new Axis(session.tracker.calls.slice(-20_000).map((call): [number, number] => [call.start, call.end ?? call.start]), until), [session, version]);
  const lanes = useMemo(() => {
    const used = new Set<Lane>(session.tracker.calls.map(laneOf));
    used.add("requests");
    if (session.stderr.length > 0 || session.hasProcess) used.add("process");
    if (session.tracker.tasks.all.size > 0) used.add("tasks");
    return LANES.filter((lane) => used.has(lane));
  }, [session, version]);
  const tall = HEAD + lanes.length * LANE + 4;

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry!.contentRect.width));
    observer.observe(canvas.current!.parentElement!);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current!;
    const ratio = devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = tall * ratio;
    const draw = element.getContext("2d")!;
    draw.scale(ratio, ratio);
    draw.clearRect(0, 0, width, tall);
    const style = getComputedStyle(document.documentElement);
    const colors = new Map<string, string>();
    const color = (name: string) => {
      let known = colors.get(name);
      if (known === undefined) colors.set(name, (known = style.getPropertyValue(name).trim()));
      return known;
    };
    const left = 88;
    const room = Math.max(10, width - left - 12);
    const x = (time: number) => left + axis.place(time) * room;
    draw.font = `10.5px ${style.getPropertyValue("--sans")}`;
    draw.textBaseline = "middle";
    lanes.forEach((lane, row) => {
      const y = HEAD + row * LANE;
      draw.fillStyle = color("--lane");
      draw.fillRect(left, y + 1, room, LANE - 3);
      draw.fillStyle = color("--muted");
      draw.fillText(lane, 12, y + LANE / 2);
    });
    draw.fillStyle = color("--muted");
    const ticks = Math.max(2, Math.floor(room / 90));
    for (let tick = 0; tick <= ticks; tick++) {
      const time = axis.time(tick / ticks);
      const text = tickText(time);
      const place = left + (tick / ticks) * room;
      draw.textAlign = tick === 0 ? "left" : tick === ticks ? "right" : "center";
      draw.fillText(tick === 0 ? "0" : text, place, HEAD / 2);
    }
    draw.textAlign = "left";
    const all = session.tracker.calls;
    const drawn = all.slice(-20_000);
    const oldest = drawn[0]?.key ?? 0;
    const shown = calls.length === all.length ? undefined : new Set<number>();
    if (shown) for (const call of calls) if (call.key >= oldest) shown.add(call.key);
    // Of spans that would lie on each other only the first is drawn, unless it differs.
    const covered = lanes.map(() => new Map<string, number>());
    const paint = (call: Call) => {
      const row = lanes.indexOf(laneOf(call));
      if (row < 0) return;
      const from = x(call.start);
      const to = Math.max(x(call.end ?? until), from + 2.5);
      const isHidden = shown !== undefined && !shown.has(call.key);
      const look = `${isFailure(call)} ${isHidden} ${call.status === "pending"}`;
      if (to <= (covered[row]!.get(look) ?? -1) + 0.5) return;
      covered[row]!.set(look, to);
      draw.globalAlpha = isHidden ? 0.18 : call.status === "pending" ? 0.55 : 1;
      draw.fillStyle = isFailure(call) ? color("--bad") : color(COLORS[laneOf(call)] ?? "--http");
      draw.beginPath();
      draw.roundRect(from, HEAD + row * LANE + 2.5, to - from, LANE - 6, 2);
      draw.fill();
      // Hollow: no person has answered it.
      if (call.policies) draw.clearRect(from + 1, HEAD + row * LANE + 5, Math.max(0.5, to - from - 2), LANE - 11);
    };
    drawn.forEach(paint);
    draw.globalAlpha = 1;
    const ofTasks = lanes.indexOf("tasks");
    if (ofTasks >= 0)
      for (const task of session.tracker.tasks.all.values()) {
        const from = x(task.begun);
        draw.globalAlpha = isOver(task) ? 1 : 0.55;
        draw.fillStyle = color(task.status === "failed" ? "--bad" : task.status === "cancelled" ? "--warn" : "--good");
        draw.beginPath();
        draw.roundRect(from, HEAD + ofTasks * LANE + 2.5, Math.max(x(task.ended ?? until) - from, 2.5), LANE - 6, 2);
        draw.fill();
      }
    draw.globalAlpha = 1;
    const process = lanes.indexOf("process");
    if (process >= 0) {
      draw.fillStyle = color("--warn");
      for (const frame of session.stderr.slice(-3000)) draw.fillRect(x(frame.at_us), HEAD + process * LANE + 3, 1.5, LANE - 7);
    }
    const at = story.value;
    const chosen = at?.session === session.id ? session.tracker.find(at.key) : undefined;
    if (chosen) {
      draw.strokeStyle = color("--text");
      draw.lineWidth = 1;
      draw.strokeRect(x(chosen.start) - 1.5, HEAD + lanes.indexOf(laneOf(chosen)) * LANE + 1, Math.max(x(chosen.end ?? until) - x(chosen.start), 2.5) + 3, LANE - 3);
    }
    const range = drag ? ([axis.time(Math.min(...drag)), axis.time(Math.max(...drag))] as [number, number]) : brush.value;
    if (range) {
      draw.fillStyle = color("--brush");
      draw.fillRect(left, HEAD, x(range[0]) - left, tall);
      draw.fillRect(x(range[1]), HEAD, left + room - x(range[1]), tall);
    }
  }, [session, version, width, tall, axis, calls, drag, brush.value, story.value, theme.value, systemDark.value]);

  const place = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left - 88) / Math.max(10, width - 100)));
  };
  const under = (event: MouseEvent): Call | null => {
    const box = canvas.current!.getBoundingClientRect();
    const lane = lanes[Math.floor((event.clientY - box.top - HEAD) / LANE)];
    const room = Math.max(10, width - 100);
    const at = event.clientX - box.left - 88;
    let best: Call | null = null;
    let least = 6;
    for (const call of calls.slice(-20_000)) {
      if (laneOf(call) !== lane) continue;
      const from = axis.place(call.start) * room;
      const to = Math.max(axis.place(call.end ?? until) * room, from + 2.5);
      const away = at < from ? from - at : at > to ? at - to : 0;
      if (away < least) { best = call; least = away; }
    }
    return best;
  };
  const taskUnder = (event: MouseEvent): Task | undefined => {
    const box = canvas.current!.getBoundingClientRect();
    if (lanes[Math.floor((event.clientY - box.top - HEAD) / LANE)] !== "tasks") return undefined;
    const room = Math.max(10, width - 100);
    const at = event.clientX - box.left - 88;
    return [...session.tracker.tasks.all.values()].findLast((task) => at >= axis.place(task.begun) * room - 3 && at <= axis.place(task.ended ?? until) * room + 3);
  };
  return (
    <div class="timeline" data-testid="timeline" role="slider" tabIndex={0} aria-label="Time range" aria-valuemin={0} aria-valuemax={100} aria-valuenow={brush.value ? Math.round(axis.place(brush.value[0]) * 100) : 0}
      aria-valuetext={brush.value ? `from ${clock(brush.value[0])} to ${clock(brush.value[1])} s` : `all of ${clock(until)} s`} title="Arrows choose a time range, Shift with arrows changes its end, Escape ends it"
      onKeyDown={(event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const next = moved(brush.value && [axis.place(brush.value[0]), axis.place(brush.value[1])], event.key, event.shiftKey);
        if (next === undefined || (next === null && !brush.value)) return;
        event.preventDefault();
        event.stopPropagation();
        brush.value = next && [axis.time(next[0]), axis.time(next[1])];
      }}>
      <canvas ref={canvas} role="img" aria-label={`Timeline of ${count(session.tracker.calls.length, "call")}; drag to choose a time range`} style={{ height: `${tall}px` }}
        title={hover ? `${hover.method} ${hover.target ?? ""} ${hover.end !== undefined ? duration(hover.end - hover.start) : ""}${hover.policies ? ", answered by a policy" : ""}` : undefined}
        onPointerDown={(event) => { canvas.current!.setPointerCapture(event.pointerId); const at = place(event); setDrag([at, at]); }}
        onPointerMove={(event) => (drag ? setDrag([drag[0], place(event)]) : setHover(under(event)))}
        onPointerUp={(event) => {
          if (!drag) return;
          if (Math.abs(drag[0] - drag[1]) < 0.01) {
            const call = under(event);
            const task = taskUnder(event);
            if (task) go("tasks", task.id);
            else if (call) tell(call);
            else brush.value = null;
          } else brush.value = [axis.time(Math.min(...drag)), axis.time(Math.max(...drag))];
          setDrag(null);
        }} />
    </div>
  );
}

/** The session as a file for somebody else. Secrets are redacted in it, as they are on the page. */
export function shareMenu(session: number) {
  const name = (connection.value?.title ?? "session").replaceAll(/[^\w.-]+/g, "-").replaceAll(/^-+|-+$/g, "").slice(0, 60) || "session";
  const get = (form: "trace" | "page", file: string) => void save(`sessions/${session}/${form}`, file).catch((error: Error) => toast(error.message, "error"));
  return [
    { text: "Download as trace", icon: "download" as const, run: () => get("trace", `${name}.mcptrace`) },
    { text: "Download as one HTML page", icon: "file" as const, run: () => get("page", `${name}.html`) },
  ];
}

export function TrafficHeader({ onClose }: { onClose: () => void }) {
  const session = shownSession.value?.id;
  return <div class="pane-head">{isNarrow.value ? <h1>Traffic</h1> : <h2>Traffic</h2>}<span class="grow" />{session !== undefined && !isFile && session >= 0 && <Menu icon="download" label="Share this session" testid="share" items={shareMenu(session)} />}{!isNarrow.value && <Button kind="quiet" icon="panel" label="Hide traffic" onClick={onClose} />}</div>;
}
