// The place in the page as the fragment of its address, so that Back, a reload and a copied link lead to it. Arguments that were typed are kept for
// the tab. Nothing is sent to a server because of an address.
import { batch, effect } from "@preact/signals";
import { startOf } from "./api";
import { isObject } from "./calls";
import { typedJson, typedNumber, Unfinished, write } from "./lossless";
import { hasSecrets, withoutSecrets } from "./schema";
import { catalogs, drafts, draftTexts, edited, isFile, item, lookAt, overview, selected, setDraft, setDraftText, story, view, type View } from "./store";
import type { Json, JsonObject } from "./types";

const VIEWS: View[] = ["overview", "tools", "prompts", "resources", "tasks", "logs", "answers", "check", "compare", "saved", "connect"];

export interface Place {
  server: number | null;
  view: View;
  item?: string;
  call?: { session: number; key: number };
}

/** A place as text: `/1/tools/echo?call=2.14`. */
export function placeText({ server, view, item, call }: Place): string {
  return `/${server ?? "-"}/${view}${item === undefined ? "" : `/${encodeURIComponent(item)}`}${call ? `?call=${call.session}.${call.key}` : ""}`;
}

/** The place that a text names; undefined if it names none. */
export function placeOf(text: string): Place | undefined {
  const found = /^\/(\d+|-)\/([a-z]+)(?:\/([^?]*))?(?:\?call=(-?\d+)\.(\d+))?$/.exec(text);
  if (!found || !VIEWS.includes(found[2] as View)) return undefined;
  const [, server, view, item, session, key] = found;
  try {
    return {
      server: server === "-" ? null : Number(server), view: view as View, ...(item === undefined ? {} : { item: decodeURIComponent(item) }),
      ...(session === undefined ? {} : { call: { session: Number(session), key: Number(key) } }),
    };
  } catch {
    return undefined;
  }
}

const here = (): Place => ({ server: selected.value, view: view.value, item: item.value[view.value], call: story.value ?? undefined });

/** Goes to a place, as far as it is still there. */
function goTo(place: Place) {
  const known = overview.peek()?.connections ?? [];
  if (place.server !== null && !known.some((one) => one.id === place.server)) return;
  batch(() => {
    if (place.server !== null) lookAt(place.server);
    edited.value = null;
    view.value = place.view;
    if (place.item !== undefined || item.peek()[place.view] !== undefined) item.value = { ...item.peek(), [place.view]: place.item };
    story.value = place.call ?? null;
  });
}

/** Steps that follow each other this fast, such as those through a list, are one step back. */
const ONE_STEP = 700;

export function followPlaces() {
  let begun = false;
  let stepping = false;
  let last = 0;
  let before: Place | undefined;
  effect(() => {
    if (!overview.value || overview.value.tests) return;
    if (!begun) {
      begun = true;
      const asked = placeOf(location.hash.slice(1));
      stepping = true;
      if (asked) goTo(asked);
    }
    const place = here();
    const text = `#${placeText(place)}`;
    const now = performance.now();
    if (text !== location.hash) {
      const isNear = before !== undefined && before.view === place.view && (before.call === undefined) === (place.call === undefined) && now - last < ONE_STEP;
      try {
        if (stepping || isNear) history.replaceState(null, "", text);
        else history.pushState(null, "", text);
      } catch {
        // A page that is a file may have no history.
      }
      last = now;
    }
    before = place;
    stepping = false;
  });
  addEventListener("popstate", () => {
    const fragment = location.hash.slice(1);
    // The address of another start, which was pasted into this tab.
    if (new URLSearchParams(fragment).has("token") && !fragment.startsWith("/")) return location.reload();
    const place = placeOf(fragment);
    if (!overview.peek()) return;
    if (!place) return history.replaceState(null, "", `#${placeText(here())}`);
    stepping = true;
    goTo(place);
    stepping = false;
  });
}

/** Characters of typed arguments that are kept; files in them are seldom worth it. */
const MOST_KEPT = 1_000_000;
const KEPT_AS = "mcproof-drafts";

/** Stands before what is no number yet, while it is kept. */
const NOT_YET = "\ue000not yet a number ";

function frozen(value: Json): Json {
  if ((value as unknown) instanceof Unfinished) return NOT_YET + String(value);
  if (Array.isArray(value)) return value.map(frozen);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, frozen(one)])) : value;
}

function thawed(value: Json): Json {
  if (typeof value === "string") return value.startsWith(NOT_YET) ? typedNumber(value.slice(NOT_YET.length)) : value;
  if (Array.isArray(value)) return value.map(thawed);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, thawed(one)])) : value;
}

/** The schema of the arguments that a slot is for: tools alone have one. */
function schemaOf(slot: string): JsonObject {
  const [, id, name] = /^(\d+) tools (.*)$/s.exec(slot) ?? [];
  const schema = catalogs.peek().get(Number(id))?.tools.items.find((tool) => tool.name === name)?.inputSchema;
  return schema !== undefined && isObject(schema) ? schema : {};
}

function withoutPasswords(slot: string, value: Json): Json {
  const schema = schemaOf(slot);
  return hasSecrets(schema) ? (withoutSecrets(value, schema, schema) ?? {}) : value;
}

/** Keeps typed arguments for the tab, but no passwords, until another start of the program. */
export function keepDrafts() {
  if (isFile) return;
  const begun = new Map<string, string>();
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT_AS) ?? "{}") as { of?: string; drafts?: [string, string][] };
    if (kept.of === startOf()) for (const [slot, text] of kept.drafts ?? []) begun.set(slot, text);
  } catch {
    // What is kept is not ours, or nothing can be kept.
  }
  batch(() => {
    for (const [slot, text] of begun) {
      const typed = typedJson(text);
      if ("value" in typed) setDraft(slot, thawed(typed.value));
      else setDraftText(slot, text);
    }
  });
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const put = () => {
    clearTimeout(waiting);
    waiting = undefined;
    const texts = new Map([...drafts.peek()].map(([slot, value]) => [slot, write(frozen(withoutPasswords(slot, value)))]));
    for (const [slot, text] of draftTexts.peek()) if (!hasSecrets(schemaOf(slot))) texts.set(slot, text);
    let room = MOST_KEPT;
    const kept = [...texts].reverse().filter(([slot, text]) => (room -= slot.length + text.length) > 0);
    try {
      sessionStorage.setItem(KEPT_AS, JSON.stringify({ of: startOf(), drafts: kept.reverse() }));
    } catch {
      // They are forgotten with the page.
    }
  };
  effect(() => {
    void drafts.value;
    void draftTexts.value;
    waiting ??= setTimeout(put, 300);
  });
  addEventListener("pagehide", () => waiting !== undefined && put());
}
