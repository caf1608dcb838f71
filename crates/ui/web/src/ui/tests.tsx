// The tests of `mcproof test --ui`: at the side, and one of them with what came of it.
import { useEffect, useState } from "preact/hooks";
import { get, post } from "../lib/api";
import { isObject } from "../lib/calls";
import { own } from "../lib/lossless";
import { openTest, overview, pane, shownTest, testDetails, toast, type TestDetails } from "../lib/store";
import { count, duration, visible } from "../lib/text";
import type { JsonObject, TestCase } from "../lib/types";
import { Badge, Button, Empty, Icon, Rows, Tabs, type IconName } from "./basics";
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
  const words = needle.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = tests.cases.filter((one) => (only === "all" || (only === "failed" ? FAILED.includes(one.state) : one.state === "pass")) && words.every((word) => `${one.suite} ${one.name} ${one.transport}`.toLowerCase().includes(word)));
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
      <div class="side-search"><Icon name="search" size={14} /><input type="search" aria-label="Search tests" placeholder={`Search ${count(tests.cases.length, "test")}`} value={needle} data-testid="search-tests" onInput={(event) => setNeedle(event.currentTarget.value)} /></div>
      {tests.problem && <div class="pad" role="alert" data-testid="tests-problem"><Plain text={tests.problem} /></div>}
      {shown.length === 0 ? <p class="muted small pad">{tests.cases.length === 0 ? (tests.running ? "Reading the suites…" : "There are no tests.") : "Nothing matches."}</p> : (
        <Rows items={shown} height={44} label="tests" testid="items-tests" current={current} onMove={(index) => { openTest(shown[index]!); pane.value = "main"; }} row={(one) => (
          <div class={`offer test ${one.state.replace(" ", "-")}`} data-state={one.state}>
            <span class="offer-name"><Icon name={own(ICONS, one.state) ?? "alert"} size={14} /><span class="clip">{visible(one.name)}</span><span class="visually-hidden">, {one.state}</span></span>
            <span class="offer-about">{one.transport} {visible(one.suite.split("/").at(-1)!)}{one.durationMs != null ? `, ${duration(one.durationMs * 1000)}` : ""}</span>
          </div>
        )} />
      )}
    </div>
  );
}

interface Place { file: string; line: number; text: string }
interface Diff { path: string; expected?: string; actual?: string }

export function TestPage() {
  const tests = overview.value!.tests!;
  const one = tests.cases.find((one) => one.id === shownTest.value);
  useEffect(() => {
    if (one && one.ended > 0 && testDetails.value?.ended !== one.ended) void openTest(one);
  }, [one?.ended]);
  if (!one) return <Empty icon="flask" title="Choose a test">Its steps and messages appear here. A test that fails says why, with the line of the suite.</Empty>;
  const details = testDetails.value?.id === one.id ? testDetails.value : null;
  return (
    <article class="detail" data-testid="test" data-status={one.state}>
      <header class="detail-head">
        <div class="detail-title"><h1>{visible(one.name)}</h1><Badge kind={one.state === "pass" ? "ok" : FAILED.includes(one.state) ? "error" : "info"}>{one.state}</Badge><Badge>{one.transport}</Badge></div>
        <p class="muted small"><code>{visible(one.suite)}:{one.line}</code>{one.durationMs != null && <> {duration(one.durationMs * 1000)}</>}</p>
        <div class="actions"><Button kind="primary" icon="play" data-testid="run-test" disabled={tests.running} onClick={() => void start([one])}>Run again</Button></div>
      </header>
      {details && <Outcome details={details} />}
      <Editor key={one.suite} file={one.suite} line={one.line} test={one} />
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
      {details.dropped && <p class="muted small">The traffic of this test is no longer kept: run it again.</p>}
    </>
  );
}

function Step({ step }: { step: JsonObject }) {
  const place = isObject(step.place) ? (step.place as unknown as Place) : undefined;
  const passed = step.passed === true;
  return <li class={passed ? "passed" : "failed"}><Icon name={passed ? "check" : "alert"} size={15} /><strong>{visible(String(step.title ?? ""))}</strong><span class="muted small">{place ? `${visible(place.file)}:${place.line}` : ""}</span><span class="muted small">{typeof step.duration_ms === "number" ? duration(step.duration_ms * 1000) : ""}</span></li>;
}

/** The suite as text: edited, saved, and its test run again. */
function Editor({ file, line, test }: { file: string; line: number; test: TestCase }) {
  const [open, setOpen] = useState(false);
  const [before, setBefore] = useState("");
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState("");
  const load = async () => {
    setWrong("");
    try {
      const { text } = await get<{ text: string }>(`suites/text?file=${encodeURIComponent(file)}`);
      setBefore(text);
      setText(text);
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
      await start([test]);
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <section class="block">
      <div class="block-bar"><span class="block-kind">suite</span><code class="clip">{visible(file)}</code><span class="grow" />{open ? <><Button kind="primary" icon="play" data-testid="save-run" disabled={overview.value!.tests!.running} onClick={() => void save()}>Save and run</Button><Button kind="quiet" icon="close" label="Close the suite" onClick={() => setOpen(false)} /></> : <Button data-testid="edit-suite" onClick={() => void load()}>Edit</Button>}</div>
      {open && <textarea class="suite-text" aria-label={`Text of ${file}, test at line ${line}`} spellcheck={false} rows={Math.min(30, text.split("\n").length + 1)} value={text} data-testid="suite-text" onInput={(event) => setText(event.currentTarget.value)} />}
      {wrong && <p class="note error" role="alert">{visible(wrong)}</p>}
    </section>
  );
}
