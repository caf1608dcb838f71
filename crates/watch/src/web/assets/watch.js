"use strict";
// Keeps an open page as fresh as the store, and answers the keyboard. The server makes all markup; nothing is built from text here.

const page = document.body.dataset;
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
document.documentElement.classList.add("scripted");

// Times that grow

function span(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  const two = (large, unit, small, part) => (small ? `${large} ${unit} ${small} ${part}` : `${large} ${unit}`);
  if (days >= 3) return `${days} days`;
  if (days > 0) return two(days, days === 1 ? "day" : "days", hours, "h");
  if (hours > 0) return two(hours, "h", minutes, "min");
  return minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
}

// The server's clock counts: a browser's may be wrong.
const skew = Date.now() - Number(page.now || Date.now());

function age() {
  const now = Date.now() - skew;
  for (const time of all("time[data-at]")) {
    const seconds = (now - Number(time.dataset.at)) / 1000;
    const text = seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(age, 5000);

// The filter of the overview

const search = find("#search");
let shown = 0;

function filterRows() {
  if (!search || page.page !== "overview") return;
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rows = all("#rows > .row");
  shown = 0;
  for (const row of rows) {
    row.hidden = !words.every((word) => row.dataset.text.includes(word));
    if (!row.hidden) shown += 1;
  }
  const count = find("#shown");
  if (count) count.textContent = shown === rows.length ? "" : `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
}

if (search) {
  search.addEventListener("input", filterRows);
  for (const pick of all(".filter select")) pick.addEventListener("change", () => pick.form.requestSubmit());
}

// The search in a transcript

for (const box of all("input.wire")) {
  box.addEventListener("input", () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const frames = all(".frame", box.closest("section") ?? document);
    let found = 0;
    for (const frame of frames) {
      const text = frame.textContent.toLowerCase();
      frame.hidden = !words.every((word) => text.includes(word));
      if (!frame.hidden) found += 1;
    }
    find(".found", box.parentElement).textContent = words.length ? `${found} of ${frames.length} frames` : "";
  });
}

// News

const live = find("#live");
const news = new Set();
let timer = null;

const parsed = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");

/** The rows of targets that changed, each put where it belongs now, or taken away. */
async function refreshRows(names) {
  const query = new URLSearchParams(location.search);
  query.delete("q");
  if (!names.has("*")) query.set("names", JSON.stringify([...names]));
  const response = await fetch(`/rows?${query}`);
  if (!response.ok) return;
  const fresh = await parsed(response);
  find("#answer").replaceWith(find("#answer", fresh));
  const list = find("#rows");
  const before = (row, other) => Number(row.dataset.rank) - Number(other.dataset.rank) || (row.dataset.name < other.dataset.name ? -1 : 1);
  const came = new Set(all(".row", fresh).map((row) => row.id));
  for (const row of all(".row", fresh)) {
    const old = document.getElementById(row.id);
    const hadFocus = old?.contains(document.activeElement);
    if (!old || old.dataset.rank !== row.dataset.rank) {
      old?.remove();
      row.classList.add("fresh");
      list.insertBefore(row, all(".row", list).find((other) => before(row, other) < 0) ?? null);
    } else {
      old.replaceWith(row);
    }
    if (hadFocus) find("a", row).focus();
  }
  // What was asked for and did not come is gone, or fits the filter no more.
  const asked = (row) => names.has("*") || names.has(decodeURIComponent(row.id.slice("t-".length)));
  for (const row of all(".row", list)) if (asked(row) && !came.has(row.id)) row.remove();
  filterRows();
  age();
}

/** Another page is loaded anew, unless somebody is busy with it. */
async function refreshPage() {
  const main = find("#main");
  const busy = main.contains(document.activeElement) && document.activeElement.matches("input, select, textarea");
  const searching = all("input.wire").some((box) => box.value);
  if (busy || searching || find("dialog[open]") || getSelection().type === "Range") return;
  const response = await fetch(location.href);
  if (!response.ok || response.redirected) return;
  const fresh = find("#main", await parsed(response));
  // What was opened stays open.
  const open = all("details", main).map((details) => details.open);
  const selected = document.activeElement.id;
  all("details", fresh).forEach((details, index) => { details.open = open[index] ?? false; });
  main.replaceChildren(...fresh.childNodes);
  if (selected) document.getElementById(selected)?.focus();
  age();
}

function tell() {
  timer = null;
  const names = new Set(news);
  news.clear();
  const work = page.page === "overview" && find("#rows") ? refreshRows(names) : refreshPage();
  work.catch(() => { live.textContent = "offline"; });
}

if (live && (page.follows || find("#rows"))) {
  const source = new EventSource("/events");
  source.addEventListener("open", () => { live.textContent = "● live"; });
  source.addEventListener("error", () => { live.textContent = "○ offline"; });
  source.addEventListener("changed", (event) => {
    for (const name of JSON.parse(event.data)) {
      if (find("#rows") || name === "*" || page.follows === "*" || page.follows === name) news.add(name);
    }
    if (news.size > 0) timer ??= setTimeout(tell, 1000);
  });
}

// A link from elsewhere comes without the login: asked for from our own page, it has one.
const login = find("#login");
if (login) {
  const next = login.elements.next.value;
  fetch(next, { redirect: "manual" }).then((response) => { if (response.ok) location.replace(next); }).catch(() => {});
}

// Keys

const keys = find("#keys");
find("#help")?.addEventListener("click", () => keys.showModal());

function step(by) {
  const links = all("#rows > .row:not([hidden]) .who > a:first-child, a.step").filter((link) => link.checkVisibility?.({ contentVisibilityAuto: false }) ?? true);
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1);
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") {
      event.target.value = event.target.type === "search" ? "" : event.target.value;
      event.target.dispatchEvent(new Event("input"));
      event.target.blur();
    } else if (event.key === "Enter" && event.target === search) {
      event.preventDefault();
      step(1);
    }
    return;
  }
  const actions = {
    "/": () => (search ?? find("input.wire"))?.focus(),
    j: () => step(1),
    k: () => step(-1),
    g: () => location.assign("/"),
    i: () => location.assign("/incidents"),
    "?": () => keys.showModal(),
  };
  const action = actions[event.key];
  if (action && !keys.open) {
    event.preventDefault();
    action();
  }
});
