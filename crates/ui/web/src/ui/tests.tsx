// The tests of `mcproof test --ui`: at the side, and one of them with what came of it.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "../lib/api";
import { isObject } from "../lib/calls";
import { own } from "../lib/lossless";
import { openTest, overview, pane, shownTest, testDetails, toast, type TestDetails } from "../lib/store";
import { count, duration, visible } from "../lib/text";
import type { JsonObject, TestCase } from "../lib/types";
import { Badge, Button, Empty, Icon, Rows, Said, Tabs, type IconName } from "./basics";
import { Plain, Problem } from "./result";

const FAILED = ["fail", "flaky", "not run", "cancelled", "unknown"];
const ICONS: Record<string, IconName> = { pass: "check", fail: "alert", flaky: "warning", running: "activity", waiting: "dot", skip: "right" };

/** As a filter expression takes a text; a parenthesis in it stands for itself. */
const exactly = (text: string) => `=${text.replaceAll(/[()\\]/g, (symbol) => `\\${symbol}`)}`;
const expression = (cases: TestCase[]) => cases.map((one) => `(suite(${exactly(one.suite)}) & name(${exactly(one.name)})${one.transport ? ` & transport(${exactly(one.transport)})` : ""})`).join(" | ");

const start = (cases?: TestCase[]) => post("tests/run", cases ? { filter: expression(cases) } : {}).catch((error: Error) => toast(error.message, "error"));

export function TestsSide() {
  const tests = overview.value!.tests!;
  const [needle, setNeedle] = useState("");
  const [only, setOnly] = useState<"all" | "failed" | "passed">("all");
  const { selected, mistake } = useSelection(needle);
  const words = selected ? [] : needle.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = tests.cases.filter((one) => (only === "all" || (only === "failed" ? FAILED.includes(one.state) : one.state === "pass")) && (!selected || selected.has(one.id)) && words.every((word) => `${one.suite} ${one.name} ${one.transport} ${one.tags.join(" ")}`.toLowerCase().includes(word)));
  const failed = tests.cases.filter((one) => FAILED.includes(one.state));
  const counts = { passed: tests.cases.filter((one) => one.state === "pass").length, failed: failed.length };
  const current = shown.findIndex((one) => one.id === shownTest.value);
  return (
    <div class="side-list" data-testid="tests" data-status={tests.running ? "running" : "idle"} data-passed={counts.passed} data-failed={counts.failed}>
      <div class="tests-head">
        <div class="actions">
          {tests.running ? <Button kind="danger" icon="stop" data-testid="stop-tests" onClick={() => void post("tests/stop")}>Stop</Button> : <Button kind="primary" icon="play" data-testid="run-all" onClick={() => void start()}>Run all</Button>}
          <Button icon="again" label="Run failed tests again" data-testid="run-failed" disabled={tests.running || failed.length === 0} onClick={() => void start(failed)}>Failed</Button>
          <Button icon="search" label="Run shown tests" data-testid="run-shown" disabled={tests.running || shown.length === 0 || shown.length === tests.cases.length} onClick={() => void start(shown)}>Shown</Button>
        </div>
        <p class="small muted" role="status">{tests.running ? "Running… " : ""}{counts.passed} passed, {counts.failed} failed of {tests.cases.length}</p>
        <Tabs label="Which tests" tabs={[["all", "All"], ["failed", "Failed"], ["passed", "Passed"]]} value={only} onChange={setOnly} />
      </div>
      <div class="side-search"><Icon name="search" size={14} /><input type="search" aria-label="Search tests" placeholder={`Search ${count(tests.cases.length, "test")}, or tag(slow) & !name(…)`} spellcheck={false} aria-invalid={mistake !== ""} aria-describedby={mistake ? "tests-mistake" : undefined} value={needle} data-testid="search-tests" onInput={(event) => setNeedle(event.currentTarget.value)} /></div>
      {mistake && <p class="note error" role="alert" id="tests-mistake" data-testid="tests-mistake"><Said text={mistake} /></p>}
      {tests.problem && <div class="pad" role="alert" data-testid="tests-problem"><Plain text={tests.problem} /></div>}
      {shown.length === 0 ? <p class="muted small pad">{tests.cases.length === 0 ? (tests.running ? "Reading the suites…" : "There are no tests.") : "Nothing matches."}</p> : (
        <Rows items={shown} height={44} label="tests" testid="items-tests" current={current} onMove={(index) => { openTest(shown[index]!); pane.value = "main"; }} row={(one) => (
          <div class={`offer test ${one.state.replace(" ", "-")}`} data-state={one.state}>
            <span class="offer-name"><Icon name={own(ICONS, one.state) ?? "alert"} size={14} /><span class="clip">{visible(one.name)}</span><span class="visually-hidden">, {one.state}</span></span>
            <span class="offer-about">{one.transport} {visible(one.suite.split("/").at(-1)!)}{one.tags.length > 0 && `, ${one.tags.map(visible).join(", ")}`}{one.durationMs != null ? `, ${duration(one.durationMs * 1000)}` : ""}</span>
          </div>
        )} />
      )}
    </div>
  );
}

/** Whether it is an expression of `--filter` rather than words. */
const isExpression = (text: string) => /\b(name|test|tag|transport|server|suite|file|all|none)\s*\(/.test(text);

/** The tests that an expression selects, as `mcproof test --filter` has it; nothing for words. */
function useSelection(text: string): { selected?: Set<number>; mistake: string } {
  const [found, setFound] = useState<{ text: string; selected?: Set<number>; mistake: string }>({ text: "", mistake: "" });
  const listed = overview.value!.tests!.cases.map((one) => one.id).join(" ");
  useEffect(() => {
    if (!isExpression(text)) return;
    let current = true;
    const timer = setTimeout(() => void post<{ tests: number[] }>("tests/select", { filter: text })
      .then(({ tests }) => current && setFound({ text, selected: new Set(tests), mistake: "" }))
      .catch((error: Error) => current && setFound({ text, selected: new Set(), mistake: error.message })), 200);
    return () => { current = false; clearTimeout(timer); };
  }, [text, listed]);
  return isExpression(text) ? (found.text === text ? found : { selected: found.selected ?? new Set(), mistake: "" }) : { mistake: "" };
}

/** Where the test fails; where it begins, if that is in its suite and known. */
function lineOf(details: TestDetails | null, one: TestCase): number {
  const diagnostics = details && Array.isArray(details.finished.diagnostics) ? details.finished.diagnostics.filter(isObject) : [];
  const place = diagnostics.map(({ place }) => place).find((place) => isObject(place) && place.file === one.suite);
  return isObject(place) && typeof place.line === "number" ? place.line : one.line;
}

interface Place { file: string; line: number; text: string }
interface Diff { path: string; expected?: string; actual?: string }

export function TestPage() {
  const tests = overview.value!.tests!;
  const one = tests.cases.find((one) => one.id === shownTest.value);
  useEffect(() => {
    if (one && (testDetails.value?.id === one.id ? testDetails.value.ended : 0) !== one.ended) void openTest(one);
  }, [one?.ended]);
  if (!one) return <Empty icon="flask" title="Choose a test">Its steps and messages appear here. A test that fails says why, with the line of the suite.</Empty>;
  const details = testDetails.value?.id === one.id ? testDetails.value : null;
  return (
    <article class="detail" data-testid="test" data-status={one.state}>
      <header class="detail-head">
        <div class="detail-title"><h1>{visible(one.name)}</h1><Badge kind={one.state === "pass" ? "ok" : FAILED.includes(one.state) ? "error" : "info"}>{one.state}</Badge><Badge>{one.transport}</Badge>{one.tags.map((tag) => <Badge key={tag}>{visible(tag)}</Badge>)}</div>
        <p class="muted small"><code>{visible(one.suite)}:{one.line}</code>{one.durationMs != null && <> {duration(one.durationMs * 1000)}</>}</p>
        <div class="actions"><Button kind="primary" icon="play" data-testid="run-test" disabled={tests.running} onClick={() => void start([one])}>Run again</Button></div>
      </header>
      {details && <Outcome details={details} />}
      <Editor key={one.suite} file={one.suite} line={lineOf(details, one)} test={one} />
    </article>
  );
}

function Outcome({ details }: { details: TestDetails }) {
  const { finished } = details;
  const list = (value: unknown) => (Array.isArray(value) ? value.filter(isObject) : []);
  return (
    <>
      {list(finished.diagnostics).map((diagnostic, index) => {
        const place = isObject(diagnostic.place) ? (diagnostic.place as unknown as Place) : undefined;
        return (
          <div key={index}>
            <Problem diagnostic={diagnostic as never} />
            {place && <Plain text={`${place.file}:${place.line}\n${place.text}`} />}
            {list(diagnostic.differences).length > 0 && <table class="diff"><thead><tr><th scope="col">Where</th><th scope="col">Expected</th><th scope="col">Found</th></tr></thead><tbody>{list(diagnostic.differences).map((difference, at) => { const { path, expected, actual } = difference as unknown as Diff; return <tr key={at}><th scope="row"><code>{visible(path)}</code></th><td class="is">{visible(String(expected ?? ""))}</td><td class="was">{visible(String(actual ?? ""))}</td></tr>; })}</tbody></table>}
          </div>
        );
      })}
      {typeof finished.reason === "string" && <p class="note">{visible(finished.reason)}</p>}
      <ol class="doctor-steps">{list(finished.steps).map((step, index) => <Step key={index} step={step} />)}</ol>
      {details.dropped && <p class="muted small" data-testid="traffic-dropped">The traffic of this test made room for that of others: run it again.</p>}
    </>
  );
}

function Step({ step }: { step: JsonObject }) {
  const place = isObject(step.place) ? (step.place as unknown as Place) : undefined;
  const passed = step.passed === true;
  return <li class={passed ? "passed" : "failed"}><Icon name={passed ? "check" : "alert"} size={15} /><strong>{visible(String(step.title ?? ""))}</strong><span class="muted small">{place ? `${visible(place.file)}:${place.line}` : ""}</span><span class="muted small">{typeof step.duration_ms === "number" ? duration(step.duration_ms * 1000) : ""}</span></li>;
}

/** Lines of a suite that have numbers beside them. */
const MOST_NUMBERED = 5000;

/** What was typed and not saved, by file: it stays when the editor is closed. */
const typed = new Map<string, { before: string; text: string }>();

/** The suite as text: edited, saved, and its test run again. */
function Editor({ file, line, test }: { file: string; line: number; test: TestCase }) {
  const [open, setOpen] = useState(typed.has(file));
  const [before, setBefore] = useState(typed.get(file)?.before ?? "");
  const [text, setText] = useState(typed.get(file)?.text ?? "");
  const [wrong, setWrong] = useState("");
  const [changed, setChanged] = useState(false);
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  const put = (next: string) => {
    setText(next);
    if (next === before) typed.delete(file);
    else typed.set(file, { before, text: next });
  };
  const load = async (mine?: string) => {
    setWrong("");
    try {
      const { text } = await get<{ text: string }>(`suites/text?file=${encodeURIComponent(file)}`);
      setBefore(text);
      setText(mine ?? text);
      if (mine === undefined) typed.delete(file);
      else typed.set(file, { before: text, text: mine });
      setChanged(false);
      setOpen(true);
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  const save = async () => {
    setWrong("");
    try {
      await post("suites/text", { file, before, after: text });
      setBefore(text);
      typed.delete(file);
      await start([test]);
    } catch (error) {
      const { message } = error as Error;
      setWrong(message);
      setChanged(message.includes("was changed by another program"));
    }
  };
  const lines = text.split("\n");
  // The line that matters is in sight, and has the caret.
  useEffect(() => {
    const element = area.current;
    if (!open || !element) return;
    const begin = text.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    element.focus({ preventScroll: true });
    element.setSelectionRange(begin, begin);
    const height = parseFloat(getComputedStyle(element).lineHeight) || 19;
    element.scrollTop = Math.max(0, (line - 5) * height);
  }, [open, test.id]);
  return (
    <section class="block">
      <div class="block-bar"><span class="block-kind">suite</span><code class="clip">{visible(file)}</code>{open && text !== before && <Badge kind="warning">not saved</Badge>}<span class="grow" />{open ? <><Button kind="primary" icon="play" data-testid="save-run" disabled={overview.value!.tests!.running} onClick={() => void save()}>Save and run</Button><Button kind="quiet" icon="close" label="Close the suite" onClick={() => setOpen(false)} /></> : <Button data-testid="edit-suite" onClick={() => void (typed.has(file) ? setOpen(true) : load())}>Edit</Button>}</div>
      {open && (
        <div class="suite-editor">
          <div class="suite-lines" ref={numbers} aria-hidden="true">{lines.length <= MOST_NUMBERED && lines.map((_, index) => <div key={index} class={index + 1 === line ? "here" : ""}>{index + 1}</div>)}</div>
          <textarea ref={area} class="suite-text" aria-label={`Text of ${file}, test at line ${line}`} spellcheck={false} wrap="off" rows={Math.min(30, lines.length + 1)} value={text} data-testid="suite-text" onInput={(event) => put(event.currentTarget.value)} onScroll={(event) => { if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop; }} />
        </div>
      )}
      {wrong && <p class="note error" role="alert">{visible(wrong)}</p>}
      {changed && <div class="actions"><Button data-testid="keep-mine" onClick={() => void load(text)}>Keep my text</Button><Button kind="quiet" data-testid="take-file" onClick={() => void load()}>Take the text of the file</Button></div>}
    </section>
  );
}
