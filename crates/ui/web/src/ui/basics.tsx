import {
  Activity, ArrowDownLeft, ArrowLeftRight, ArrowUpRight, Bell, BookOpen, Boxes, Check, ChevronDown, ChevronRight, CircleAlert, CircleDot, Copy, Download, FileText,
  FlaskConical, GitCompare, Info, ListChecks, MessageSquare, Moon, PanelRight, Play, Plug, Plus, Radio, RotateCcw, Search, ShieldCheck, Square,
  Stethoscope, Sun, SunMoon, Terminal, Trash2, TriangleAlert, Wrench, X, type IconNode,
} from "lucide";
import { h, type ComponentChildren, type ComponentProps } from "preact";

type ButtonAttributes = ComponentProps<"button"> & { [data: `data-${string}`]: string };
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { copy, visible } from "../lib/text";
import { toast } from "../lib/store";

const ICONS = {
  activity: Activity, in: ArrowDownLeft, out: ArrowUpRight, bell: Bell, book: BookOpen, boxes: Boxes, check: Check, down: ChevronDown,
  right: ChevronRight, alert: CircleAlert, dot: CircleDot, copy: Copy, download: Download, file: FileText, flask: FlaskConical, compare: GitCompare, info: Info, list: ListChecks,
  message: MessageSquare, moon: Moon, panel: PanelRight, play: Play, plug: Plug, plus: Plus, radio: Radio, again: RotateCcw, search: Search,
  shield: ShieldCheck, stop: Square, doctor: Stethoscope, sun: Sun, auto: SunMoon, terminal: Terminal, trash: Trash2, warning: TriangleAlert,
  swap: ArrowLeftRight, wrench: Wrench, close: X,
} satisfies Record<string, IconNode>;
export type IconName = keyof typeof ICONS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <span class="icon">
      <svg xmlns="http://www.w3.org/2000/svg" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
        {ICONS[name].map(([tag, attributes]) => h(tag, attributes as Record<string, string>))}
      </svg>
    </span>
  );
}

export function Button({ icon, children, kind = "plain", label, ...rest }: {
  icon?: IconName; children?: ComponentChildren; kind?: "plain" | "primary" | "quiet" | "danger"; label?: string;
} & Omit<ButtonAttributes, "icon" | "label" | "children">) {
  return (
    // A key that is held clicks once: what it has begun is often ended by the same button.
    <button type="button" class={`button ${kind} ${children ? "" : "bare"}`} aria-label={label} title={label} onKeyDown={(event) => event.repeat && event.key === "Enter" && event.preventDefault()} {...rest}>
      {icon && <Icon name={icon} size={15} />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function CopyButton({ text, label = "Copy" }: { text: () => string; label?: string }) {
  return <Button kind="quiet" icon="copy" label={label} onClick={async () => toast((await copy(text())) ? "Copied" : "The browser does not allow copying", "info")} />;
}

export function Tabs<T extends string>({ tabs, value, onChange, label }: { tabs: [T, string][]; value: T; onChange: (tab: T) => void; label: string }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const next = (tabs.findIndex(([tab]) => tab === value) + step + tabs.length) % tabs.length;
    onChange(tabs[next]![0]);
    ((event.currentTarget as HTMLElement).children[next] as HTMLElement).focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(([tab, text]) => (
        <button key={tab} type="button" role="tab" aria-selected={tab === value} tabIndex={tab === value ? 0 : -1} data-testid={`tab-${tab}`} onClick={() => onChange(tab)}>{text}</button>
      ))}
    </div>
  );
}

/** A menu behind a button. */
export function Menu({ icon, label, items, text, testid }: { icon?: IconName; label: string; text?: string; testid?: string; items: { text: string; run: () => void; icon?: IconName; disabled?: boolean; why?: string }[] }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: MouseEvent) => !root.current?.contains(event.target as Node) && setOpen(false);
    addEventListener("mousedown", away);
    (root.current?.querySelector("[role=menuitem]") as HTMLElement | null)?.focus();
    return () => removeEventListener("mousedown", away);
  }, [open]);
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") { setOpen(false); root.current?.querySelector("button")?.focus(); event.stopPropagation(); }
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || !open) return;
    const all = [...root.current!.querySelectorAll<HTMLElement>("[role=menuitem]")];
    all[(all.indexOf(document.activeElement as HTMLElement) + step + all.length) % all.length]?.focus();
    event.preventDefault();
  };
  return (
    <div class="menu" ref={root} onKeyDown={keys}>
      <button type="button" class={`button ${text ? "plain" : "quiet bare"}`} aria-haspopup="menu" aria-expanded={open} aria-label={label} data-testid={testid} onClick={() => setOpen(!open)}>
        {icon && <Icon name={icon} size={15} />}{text && <span>{text}</span>}<Icon name="down" size={13} />
      </button>
      {open && (
        <div class="menu-items" role="menu" aria-label={label}>
          {items.map((item) => (
            <button key={item.text} type="button" role="menuitem" disabled={item.disabled} title={item.disabled ? item.why : undefined} onClick={() => { setOpen(false); item.run(); }}>
              {item.icon && <Icon name={item.icon} size={15} />}<span>{item.text}</span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Rows beyond the edges, so that a slow scroll shows no gap. */
const SPARE = 3;

/** A list of rows of one height, of which only those exist that are seen. */
export function Rows<T>({ items, height, row, label, current, onMove, testid, follow }: {
  items: T[]; height: number; row: (item: T, index: number) => ComponentChildren; label: string;
  current?: number; onMove?: (index: number) => void; testid?: string; follow?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(600);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setRoom(box.current!.clientHeight));
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (follow && atEnd.current) box.current!.scrollTop = items.length * height;
  }, [items.length, follow, height]);
  useLayoutEffect(() => {
    if (current === undefined || current < 0) return;
    const { scrollTop, clientHeight } = box.current!;
    if (current * height < scrollTop) box.current!.scrollTop = current * height;
    else if ((current + 1) * height > scrollTop + clientHeight) box.current!.scrollTop = (current + 1) * height - clientHeight;
  }, [current, height]);
  const first = Math.max(0, Math.floor(top / height) - SPARE);
  const last = Math.min(items.length, Math.ceil((top + room) / height) + SPARE);
  const keys = (event: KeyboardEvent) => {
    if (!onMove || items.length === 0) return;
    const at = current ?? -1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 10, PageUp: at - 10, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onMove(Math.max(0, Math.min(items.length - 1, to)));
  };
  return (
    <div class="rows" ref={box} role="listbox" aria-label={label} tabIndex={0} data-testid={testid} data-count={items.length} onKeyDown={keys}
      aria-activedescendant={current !== undefined && current >= first && current < last ? `${testid}-${current}` : undefined}
      onScroll={() => {
        const { scrollTop, clientHeight, scrollHeight } = box.current!;
        atEnd.current = scrollTop + clientHeight >= scrollHeight - height * 2;
        setTop(scrollTop);
      }}>
      <div class="rows-space" role="presentation" style={{ height: `${items.length * height}px` }}>
        {Array.from({ length: last - first }, (_, slot) => {
          // A row that leaves the window is used again for one that enters it, and no row ever moves among the others.
          const index = first + ((((slot - first) % (last - first)) + last - first) % (last - first));
          const item = items[index]!;
          return (
            <div key={slot} id={`${testid}-${index}`} class="row" role="option" aria-selected={index === current} aria-posinset={index + 1} aria-setsize={items.length}
              style={{ top: `${index * height}px`, height: `${height}px` }} onClick={() => onMove?.(index)}>
              {row(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return <div class="empty"><Icon name={icon} size={22} /><h2>{title}</h2>{children && <p>{children}</p>}</div>;
}

/** A sentence of mcproof, in which `code` stands between backticks. What servers say in it stays text. */
export function Said({ text }: { text: string }) {
  const parts = visible(text).split("`");
  // One backtick alone is what somebody wrote.
  if (parts.length % 2 === 0) return <>{parts.join("`")}</>;
  return <>{parts.map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

export function Badge({ kind = "plain", children }: { kind?: "plain" | "ok" | "error" | "warning" | "info"; children: ComponentChildren }) {
  return <span class={`badge ${kind}`}>{children}</span>;
}
