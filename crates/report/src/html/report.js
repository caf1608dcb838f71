"use strict";
// Shows the run that is embedded in this page. Text of a server or a suite is inserted as text, never as markup.

const run = JSON.parse(document.getElementById("run").textContent);
const cases = JSON.parse(document.getElementById("tests").textContent);

const VERDICTS = {
  fail: { mark: "✗", word: "failed" },
  flaky: { mark: "~", word: "flaky" },
  warned: { mark: "!", word: "warning" },
  canceled: { mark: "•", word: "canceled" },
  skipped: { mark: "−", word: "skipped" },
  pass: { mark: "✓", word: "passed" },
};
const state = { search: "", verdicts: new Set(), transports: new Set(), tags: new Set(), shown: null };

// Elements

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (value === true) {
      made.setAttribute(key, "");
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const text = (name, className, content) => element(name, { class: className }, String(content));

function duration(ms) {
  if (ms >= 60000) return `${(ms / 60000).toFixed(1)} min`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms >= 10 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`;
}

function size(bytes) {
  return bytes < 2048 ? `${bytes} bytes` : bytes < 2097152 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;
}

const verdictOf = ({ outcome }) =>
  outcome.verdict === "pass" && outcome.diagnostics.some((found) => found.severity === "warning") ? "warned" : outcome.verdict;

// The list of cases

/** The searchable text of a case, built for the first search. */
function haystack(entry) {
  if (entry.haystack === undefined) {
    const { plan, outcome } = entry;
    const found = outcome.diagnostics.flatMap((diagnosis) => [diagnosis.code, diagnosis.message, diagnosis.hint ?? ""]);
    const steps = outcome.steps.flatMap((step) => [step.title, ...step.exchanges.map((exchange) => exchange.request)]);
    const wire = outcome.sessions.flatMap((session) => session.frames.flatMap((frame) => [frame.said ?? "", frame.text ?? ""]));
    const words = [plan.name, plan.suite, plan.transport, ...plan.tags, ...plan.servers, ...found, ...steps, ...outcome.aftermath, ...wire];
    entry.haystack = words.join("\n").toLowerCase();
  }
  return entry.haystack;
}

function matches(entry) {
  const { verdicts, transports, tags, search } = state;
  return (
    (verdicts.size === 0 || verdicts.has(verdictOf(entry))) &&
    (transports.size === 0 || transports.has(entry.plan.transport)) &&
    (tags.size === 0 || entry.plan.tags.some((tag) => tags.has(tag))) &&
    search.split(/\s+/).every((word) => word === "" || haystack(entry).includes(word))
  );
}

const list = element("ul", { id: "list", "aria-label": "Tests" });
const count = element("div", { id: "count", role: "status" });
const detail = element("div", { id: "detail", tabindex: "-1" });
const search = element("input", {
  type: "search",
  id: "search",
  placeholder: "Search names, messages, the wire",
  "aria-label": "Search tests",
  autocomplete: "off",
  spellcheck: "false",
});

function chips(label, values, chosen, shown = (value) => value) {
  const button = (value) =>
    element(
      "button",
      {
        class: `chip ${value}`,
        type: "button",
        "aria-pressed": String(chosen.has(value)),
        on: {
          click: (event) => {
            if (!chosen.delete(value)) chosen.add(value);
            event.currentTarget.setAttribute("aria-pressed", String(chosen.has(value)));
            renderList();
          },
        },
      },
      shown(value),
    );
  return element("div", { class: "chips", role: "group", "aria-label": label }, values.map(button));
}

function filters() {
  const distinct = (values) => [...new Set(values)].sort();
  const verdicts = Object.keys(VERDICTS).filter((verdict) => cases.some((entry) => verdictOf(entry) === verdict));
  const number = (verdict) => cases.filter((entry) => verdictOf(entry) === verdict).length;
  const transports = distinct(cases.map((entry) => entry.plan.transport));
  const tags = distinct(cases.flatMap((entry) => entry.plan.tags));
  return element(
    "div",
    { id: "filters" },
    search,
    chips("Verdict", verdicts, state.verdicts, (verdict) => `${VERDICTS[verdict].mark} ${number(verdict)} ${VERDICTS[verdict].word}`),
    transports.length > 1 ? chips("Transport", transports, state.transports) : null,
    tags.length > 0 ? chips("Tag", tags, state.tags, (tag) => `#${tag}`) : null,
    count,
  );
}

function renderList() {
  const found = cases.filter(matches);
  count.textContent = found.length === cases.length ? run.tests : `${found.length} of ${run.tests}`;
  list.replaceChildren(...found.map((entry) => element("li", {}, entry.button)));
  if (found.length === 0) list.append(text("li", "empty", "No test matches this search."));
}

function listButton(entry) {
  const { plan, outcome } = entry;
  const verdict = verdictOf(entry);
  return element(
    "button",
    { type: "button", on: { click: () => go(`#test-${entry.index}`) } },
    element("span", { class: `mark ${verdict}`, title: VERDICTS[verdict].word }, VERDICTS[verdict].mark),
    text("span", "name", plan.name),
    text("span", "ms", outcome.ms > 0 ? duration(outcome.ms) : ""),
    text("span", "sub", [`${plan.suite}:${plan.line}`, plan.transport, ...plan.tags.map((tag) => `#${tag}`)].join(" · ")),
  );
}

// A diagnosis

function sourceLine(place, label) {
  const characters = [...place.text];
  const start = Math.min(place.column - 1, characters.length);
  const end = Math.min(start + Math.max(place.length, 1), Math.max(characters.length, start + 1));
  const [before, marked, after] = [characters.slice(0, start), characters.slice(start, end), characters.slice(end)].map((part) => part.join(""));
  const number = `${place.line} │ `;
  return [
    text("span", "number", number),
    before,
    element("mark", {}, marked),
    `${after}\n`,
    text("span", "number", `${" ".repeat(number.length - 2)}│ `),
    text("span", "gap", before),
    text("span", "carets", `${"^".repeat(Math.max(1, Math.min(marked.length, 60)))} ${label}\n`),
  ];
}

function source(diagnosis) {
  const shortened = (value) => (value.length > 80 ? `${value.slice(0, 79)}…` : value);
  const spots = diagnosis.differences
    .filter((difference) => difference.place)
    .slice(0, 12)
    .map((difference) => [difference.place, `expected ${shortened(difference.expected)}, found ${shortened(difference.actual)}`]);
  if (spots.length === 0 && diagnosis.place) spots.push([diagnosis.place, ""]);
  if (spots.length === 0) return null;
  const [{ file, line, column }] = spots[0];
  return element("pre", { class: "source" }, text("span", "at", `${file}:${line}:${column}`), spots.flatMap(([place, label]) => sourceLine(place, label)));
}

function part(label, content) {
  return element("div", { class: "part" }, text("div", "label", label), content);
}

function diagnosisCard(diagnosis) {
  const differences = diagnosis.differences.map((difference) =>
    element("tr", {}, ...[difference.path || "the whole value", difference.expected, difference.actual].map((cell) => text("td", "mono", cell))),
  );
  if (diagnosis.more > 0) differences.push(element("tr", {}, text("td", "dim", `and ${diagnosis.more} more`)));
  const head = element("tr", {}, ...["where", "expected", "found"].map((cell) => text("th", "", cell)));
  const table = () => element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, differences)));
  const signs = { "-": "minus", "+": "plus", " ": "" };
  const diff = (lines) => element("pre", { class: "diff" }, lines.map(([sign, line]) => text("span", signs[sign], `${sign} ${line}`)));
  return element(
    "section",
    { class: `diagnosis ${diagnosis.severity}` },
    text("div", "message", diagnosis.message),
    text("div", "code", diagnosis.code),
    element("div", { class: "part" }, source(diagnosis)),
    differences.length > 0 ? part("differences", table()) : null,
    diagnosis.diff ? part("− expected  + found", diff(diagnosis.diff)) : diagnosis.actual ? part("found", json(diagnosis.actual)) : null,
    diagnosis.stderr?.length > 0 ? part("stderr", text("pre", "", diagnosis.stderr.join("\n"))) : null,
    diagnosis.hint ? element("div", { class: "part hint" }, text("b", "", "Next: "), diagnosis.hint) : null,
  );
}

// The wire

/** JSON with a line for each member. Changes nothing but the white space between its tokens. */
function indented(source) {
  const token = /"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s{}[\],:"]+/g;
  let depth = 0;
  let out = "";
  let last = "";
  for (const [found] of source.matchAll(token)) {
    if (found === "}" || found === "]") {
      depth = Math.max(0, depth - 1);
      if (last !== "{" && last !== "[") out += `\n${"  ".repeat(depth)}`;
    } else if (last === "{" || last === "[" || last === ",") {
      out += `\n${"  ".repeat(depth)}`;
    }
    out += found === ":" ? ": " : found;
    if (found === "{" || found === "[") depth += 1;
    last = found;
  }
  return out;
}

function json(source) {
  const pre = element("pre", {});
  const token = /("(?:[^"\\]|\\.)*"?)(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g;
  let done = 0;
  for (const found of source.matchAll(token)) {
    pre.append(source.slice(done, found.index));
    const [whole, string, colon] = found;
    pre.append(text("span", string ? (colon ? "key" : "string") : "literal", string ?? whole), colon ?? "");
    done = found.index + whole.length;
  }
  pre.append(source.slice(done));
  return pre;
}

function frameBody(frame) {
  const body = element("div", { class: "body" });
  if (frame.head.length > 0) body.append(text("pre", "", frame.head.join("\n")));
  const content = element("div", {});
  const raw = frame.raw ?? frame.text;
  const show = (isRaw) => {
    if (isRaw || frame.text === null) content.replaceChildren(raw === null ? "" : text("pre", "raw", raw));
    else content.replaceChildren(frame.json ? json(indented(frame.text)) : text("pre", "", frame.text));
  };
  if (raw !== null) {
    const tools = element("div", { class: "tools" });
    if (frame.json || (frame.text !== null && frame.raw !== null)) {
      const toggle = element(
        "button",
        {
          class: "plain",
          type: "button",
          "aria-pressed": "false",
          on: {
            click: () => {
              const isRaw = toggle.getAttribute("aria-pressed") !== "true";
              toggle.setAttribute("aria-pressed", String(isRaw));
              toggle.textContent = isRaw ? "Show formatted" : "Show raw bytes";
              show(isRaw);
            },
          },
        },
        "Show raw bytes",
      );
      tools.append(toggle);
    }
    tools.append(size(frame.size) + (frame.cut ? "; only the first 16 KiB are in this report" : ""));
    body.append(tools, content);
    show(false);
  }
  return body;
}

function frameRow(frame) {
  const arrows = { out: "→", in: "←", local: "•" };
  const direction = { out: "to the server", in: "from the server", local: "local" };
  const first = (lines) => lines.find((line) => line !== "") ?? "";
  const cells = [
    text("span", "time", `+${(frame.us / 1e6).toFixed(3)} s`),
    element("span", { class: "arrow", title: direction[frame.dir] }, arrows[frame.dir]),
    text("span", "kind", frame.kind),
    text("span", "said", frame.said ?? first([...frame.head, frame.text ?? "", frame.raw ?? ""])),
  ];
  const classes = `frame ${frame.dir} ${frame.kind}${frame.bad ? " bad" : ""}`;
  if (frame.head.length === 0 && frame.text === null && frame.raw === null) return element("div", { class: `${classes} closed` }, cells);
  const row = element("details", { class: classes }, element("summary", {}, cells));
  row.addEventListener("toggle", () => row.childElementCount === 1 && row.append(frameBody(frame)), { once: true });
  return row;
}

function timeline(session) {
  const rows = session.frames.map(frameRow);
  const note = (content) => text("div", "cut", content);
  if (session.between > 0) rows.splice(session.after, 0, note(`${session.between} frames in between are not in this report`));
  if (session.before > 0) rows.unshift(note(`${session.before} earlier frames are not in this report`));
  if (session.dropped > 0) rows.push(note(`${session.dropped} more frames were seen, but not stored`));
  if (session.unshown > 0) rows.push(note(`${session.unshown} more frames do not fit in this report`));
  return element("div", { class: "frames" }, rows);
}

function wire(outcome) {
  const several = outcome.sessions.length > 1;
  return outcome.sessions.flatMap((session) => {
    const messages = `${session.frames.length} frames`;
    const stderr = session.frames.filter((frame) => frame.kind === "stderr").map((frame) => frame.text ?? frame.raw ?? "");
    const title = several && session.server ? `The wire to ${session.server}` : "The wire";
    return [
      text("h3", "", `${title} (${messages})`),
      session.frames.length > 0 || session.unshown > 0 ? timeline(session) : null,
      stderr.length > 0 ? text("h3", "", "stderr") : null,
      stderr.length > 0 ? text("pre", "", stderr.join("\n")) : null,
    ];
  });
}

// A case

function steps(outcome) {
  if (outcome.steps.length === 0) return null;
  const whole = Math.max(outcome.ms, ...outcome.steps.map((step) => step.at + step.ms), 0.001);
  const severalServers = new Set(outcome.steps.map((step) => step.server)).size > 1;
  const row = (step) => {
    const bar = element("span", { class: step.passed ? "bar" : "bar fail" });
    bar.style.marginLeft = `${(100 * step.at) / whole}%`;
    bar.style.width = `${(100 * step.ms) / whole}%`;
    const exchanges = step.exchanges.map((exchange) => `${exchange.request}: ${exchange.answer}, ${duration(exchange.ms)}`);
    return element(
      "tr",
      {},
      text("td", `mark ${step.passed ? "pass" : "fail"}`, step.passed ? "✓" : "✗"),
      element("td", {}, severalServers && step.server ? `${step.server}: ${step.title}` : step.title, exchanges.map((line) => text("div", "dim mono", line))),
      text("td", "dim mono", step.place),
      text("td", "number", duration(step.ms)),
      element("td", { class: "track" }, bar),
    );
  };
  return element("section", {}, text("h3", "", "Steps"), element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, outcome.steps.map(row)))));
}

function caseDetail(entry) {
  const { plan, outcome } = entry;
  const verdict = verdictOf(entry);
  const facts = [`${plan.suite}:${plan.line}`, plan.transport, duration(outcome.ms), ...plan.tags.map((tag) => `#${tag}`)];
  if (outcome.attempts > 1) facts.push(`${outcome.attempts} attempts`);
  return [
    element("button", { id: "back", class: "plain", type: "button", on: { click: () => go("#list") } }, "← All tests"),
    text("h2", "", plan.name),
    element(
      "div",
      { class: "facts" },
      text("span", `chip ${verdict}`, `${VERDICTS[verdict].mark} ${VERDICTS[verdict].word}`),
      facts.map((fact) => text("span", "chip", fact)),
    ),
    outcome.proof.map((proof) => text("p", "proof", `Proven on the wire: ${proof}`)),
    outcome.diagnostics.map(diagnosisCard),
    outcome.aftermath.map((after) => element("section", { class: "diagnosis note" }, text("b", "", "Afterwards: "), after)),
    steps(outcome),
    wire(outcome),
    outcome.attempts === 0 ? text("p", "empty", "The run was stopped before this test was done.") : null,
  ].flat(2);
}

// The overview

function covered(coverage) {
  const fill = element("span", { class: coverage.percent === 100 ? "whole" : "" });
  fill.style.width = `${coverage.percent}%`;
  const rows = coverage.unused.map(([label, names]) => element("tr", {}, text("th", "", label), text("td", "mono", names.join(", "))));
  return element(
    "section",
    {},
    element("p", {}, text("b", "", coverage.server), ` in ${coverage.suite}: ${coverage.summary}`),
    element("div", { class: "meter" }, fill),
    rows.length > 0 ? text("p", "dim", "No test used:") : null,
    rows.length > 0 ? element("table", {}, element("tbody", {}, rows)) : null,
  );
}

function differing({ suite, name, verdicts, parting }) {
  const rows = parting.map(([label, received]) => element("tr", {}, text("th", "", label), text("td", "mono", received)));
  return element("section", {}, element("p", {}, text("b", "", name), ` (${suite}) ${verdicts}`), element("table", {}, element("tbody", {}, rows)));
}

function overview() {
  const slowest = [...cases].sort((one, other) => other.outcome.ms - one.outcome.ms).slice(0, 5);
  const row = (entry) =>
    element(
      "tr",
      {},
      element("td", {}, element("a", { href: `#test-${entry.index}` }, entry.plan.name)),
      text("td", "dim", entry.plan.transport),
      text("td", "number", duration(entry.outcome.ms)),
    );
  return [
    element("button", { id: "back", class: "plain", type: "button", on: { click: () => go("#list") } }, "← All tests"),
    text("h2", "", run.summary),
    run.notices.map(diagnosisCard),
    run.specific.length > 0 ? text("h3", "", "Differs between transports") : null,
    run.specific.map(differing),
    run.coverage.length > 0 ? text("h3", "", "Coverage") : null,
    run.coverage.map(covered),
    text("h3", "", "Slowest tests"),
    element("table", {}, element("tbody", {}, slowest.map(row))),
  ].flat(2);
}

// The fragment of the URL selects a case, so that a link can lead to it.

function go(hash) {
  if (location.hash !== hash) history.pushState(null, "", hash);
  show();
}

function show() {
  const found = /^#test-(\d+)$/.exec(location.hash);
  const entry = found ? cases[Number(found[1])] : undefined;
  const isOverview = location.hash === "#overview";
  for (const other of cases) {
    if (other === entry) other.button.setAttribute("aria-current", "true");
    else other.button.removeAttribute("aria-current");
  }
  state.shown = entry ?? null;
  document.body.classList.toggle("shows-detail", entry !== undefined || isOverview);
  const content = entry ? caseDetail(entry) : overview();
  detail.replaceChildren(...content.filter((child) => child !== null && child !== undefined));
  detail.scrollTop = 0;
  document.querySelector("main").scrollTop = 0;
  entry?.button.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const found = cases.filter(matches);
  const at = found.indexOf(state.shown);
  const next = found[at < 0 ? (by > 0 ? 0 : found.length - 1) : at + by];
  if (next) go(`#test-${next.index}`);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target === search;
  if (event.key === "Escape") {
    if (isTyping && search.value !== "") {
      search.value = "";
      search.dispatchEvent(new Event("input"));
    } else if (isTyping) {
      search.blur();
    } else {
      go("#list");
    }
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    document.body.classList.remove("shows-detail");
    search.focus();
  } else if (event.key === "Enter" && isTyping) {
    const first = cases.find(matches);
    if (first) go(`#test-${first.index}`);
  } else if ((event.key === "j" && !isTyping) || (event.key === "ArrowDown" && (isTyping || list.contains(event.target)))) {
    event.preventDefault();
    step(1);
  } else if ((event.key === "k" && !isTyping) || (event.key === "ArrowUp" && (isTyping || list.contains(event.target)))) {
    event.preventDefault();
    step(-1);
  }
});

search.addEventListener("input", () => {
  state.search = search.value.trim().toLowerCase();
  renderList();
});
window.addEventListener("hashchange", show);

cases.forEach((entry, index) => {
  entry.index = index;
  entry.button = listButton(entry);
});
document.body.append(
  element(
    "header",
    {},
    text("h1", "", "mcproof"),
    text("span", "summary", run.summary),
    element("span", { class: "keys dim" }, text("kbd", "", "/"), " search ", text("kbd", "", "j"), " ", text("kbd", "", "k"), " next, previous"),
    element("button", { class: "plain", type: "button", on: { click: () => go("#overview") } }, "Overview"),
  ),
  element("main", {}, element("div", { id: "side" }, filters(), list), detail),
);
renderList();
const worst = cases.find((entry) => entry.outcome.verdict === "fail");
// On a wide page something is shown at once; on a phone the list is.
if (location.hash === "" && worst && matchMedia("(min-width: 801px)").matches) history.replaceState(null, "", `#test-${worst.index}`);
show();
