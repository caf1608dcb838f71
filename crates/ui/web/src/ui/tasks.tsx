// The tasks of a session: what they do, what came of them, and the buttons that follow and cancel them.
import { useMemo } from "preact/hooks";
import { post } from "../lib/api";
import { connection, currentSession, frameVersion, go, handshake, item, loadTasks, sessions, tasksListed, tell, toast, catalogs, useTick } from "../lib/store";
import { canCancel, canList, isOver, statusText, type Task } from "../lib/tasks";
import { clock, count, duration, visible } from "../lib/text";
import type { JsonObject, Outcome } from "../lib/types";
import { isObject } from "../lib/calls";
import { repeated } from "../lib/lossless";
import { Badge, Button, Empty, Icon, Rows } from "./basics";
import { Problem, Repeated, Shown, Tree } from "./result";

const kindOf = (status: string) => (status === "completed" ? "ok" : status === "failed" ? "error" : status === "cancelled" ? "warning" : "info");

const newestFirst = (tasks: Iterable<Task>) => [...tasks].sort((one, other) => other.begun - one.begun);

export function TaskStatusBadge({ task }: { task: Task }) {
  return <Badge kind={kindOf(task.status)}>{visible(statusText(task.status))}</Badge>;
}

export function TasksSide() {
  frameVersion.value;
  const session = currentSession.value;
  const all = newestFirst(session?.tracker.tasks.all.values() ?? []);
  const at = connection.value!;
  const listable = at.status === "open" && canList(handshake.value);
  const current = all.findIndex((task) => task.id === item.value.tasks);
  useTick(all.some((task) => !isOver(task)) && at.status === "open");
  const listed = tasksListed.value;
  return (
    <div class="side-list" data-testid="list-tasks">
      <div class="side-search"><span class="small muted">{count(all.length, "task")} of this session</span><span class="grow" />{listable && <Button kind="quiet" icon="again" label="Ask the server for its list of tasks" data-testid="list-tasks-again" onClick={() => void loadTasks(at.id)} />}</div>
      {listed?.connection === at.id && listed.error && <p class="note error" role="alert">{visible(listed.error)}</p>}
      {all.length === 0 ? <p class="muted small pad">No tasks yet.</p> : (
        <Rows items={all} height={44} label="tasks" testid="items-tasks" current={current} onMove={(index) => go("tasks", all[index]!.id)} row={(task) => (
          <div class="offer" data-status={task.status}>
            <span class="offer-name"><span class="clip">{visible(task.tool ?? task.id)}</span><TaskStatusBadge task={task} /></span>
            <span class="offer-about">{clock(task.begun)}, {elapsed(task, session!.id)}{task.tool ? ` · ${visible(task.id)}` : ""}</span>
          </div>
        )} />
      )}
    </div>
  );
}

/** How long it took, or has taken so far. */
function elapsed(task: Task, session: number): string {
  const at = connection.value!;
  const opened = at.sessions.find((one) => one.id === session)?.openedMs;
  const now = at.status === "open" && opened ? Math.max(task.updated, (Date.now() - opened) * 1000) : task.updated;
  return duration((task.ended ?? now) - task.begun);
}

export function TasksPage() {
  frameVersion.value;
  const session = currentSession.value;
  const key = item.value.tasks;
  const task = key === undefined ? undefined : session?.tracker.tasks.all.get(key);
  if (!session || session.tracker.tasks.all.size === 0)
    return <Empty icon="list" title="No tasks yet">Call a tool with the choice “Run as a task”: it appears here with its state, and later with its result.</Empty>;
  if (!task) return <Empty icon="list" title="Choose a task">Its state, its times and its result appear here.</Empty>;
  return <article class="detail"><TaskPanel id={task.id} session={session.id} whole /></article>;
}

/** One task; `whole` on its own page, and without what the page of the tool shows anyway. */
export function TaskPanel({ id, session: number, whole }: { id: string; session: number; whole?: boolean }) {
  frameVersion.value;
  const at = connection.value!;
  const session = sessions.get(number);
  const task = session?.tracker.tasks.all.get(id);
  const live = at.status === "open" && at.sessions.at(-1)?.id === number;
  useTick(live && task !== undefined && !isOver(task));
  const response = task?.response;
  const twice = useMemo(() => (response === undefined ? [] : repeated(response)), [response]);
  if (!task || !session) return <p class="muted pad">The task <code>{visible(id)}</code> is not known in this session.</p>;
  const followed = at.followed?.find((one) => one.session === number && one.task === id);
  const following = live && followed?.following === true;
  const over = isOver(task);
  const call = task.call === undefined ? undefined : session.tracker.find(task.call);
  const tool = catalogs.value.get(at.id)?.tools.items.find((one) => one.name === task.tool);
  const ask = async (wish: "state" | "follow" | "cancel") => {
    try {
      const outcome = await post<Outcome>(`connections/${at.id}/task`, { task: id, wish });
      if (outcome.failure) toast(outcome.failure.message, "error");
    } catch (error) {
      toast((error as Error).message, "error");
    }
  };
  const missing = over && task.status !== "cancelled" && !task.result && !task.error;
  const shown = task.result && Object.fromEntries(Object.entries(task.result).filter(([name]) => name !== "resultType"));
  const status = task.error ? "error" : task.result?.isError === true ? "tool-error" : task.status;
  return (
    <section class={whole ? "task whole" : "task result"} data-testid="task" data-status={task.status} aria-label="Task">
      <header class={whole ? "detail-head" : "result-bar"}>
        {whole ? <div class="detail-title"><h1>{visible(task.tool ?? "Task")}</h1><TaskStatusBadge task={task} /></div> : <><Badge>task</Badge><TaskStatusBadge task={task} /></>}
        {!whole && <span class="muted small">{elapsed(task, number)}</span>}
        {!whole && <span class="grow" />}
        <div class="actions">
          {live && !over && canCancel(handshake.value) && <Button kind="danger" icon="stop" data-testid="cancel-task" onClick={() => void ask("cancel")}>Cancel the task</Button>}
          {live && !over && !following && <Button icon="play" data-testid="follow-task" onClick={() => void ask("follow")}>Follow</Button>}
          {live && !over && whole && <Button icon="again" onClick={() => void ask("state")}>Ask for its state</Button>}
          {live && missing && !following && <Button icon="download" data-testid="task-result" onClick={() => void ask("follow")}>Get its result</Button>}
          {call && whole && <Button kind="quiet" icon="activity" onClick={() => tell(call)}>Show the call</Button>}
          {!whole && <Button kind="quiet" icon="list" onClick={() => go("tasks", id)}>Show in Tasks</Button>}
        </div>
      </header>
      {whole && (
        <dl class="terms" data-testid="task-facts">
          <div><dt>Begun</dt><dd>{clock(task.begun)} s</dd></div>
          <div><dt>{over ? "Took" : "So far"}</dt><dd>{elapsed(task, number)}</dd></div>
          <div><dt>Polls</dt><dd>{task.polls}{task.pollMs !== undefined && <span class="muted small">every {duration(task.pollMs * 1000)}</span>}</dd></div>
          <div><dt>Kept for</dt><dd>{task.ttlMs === undefined ? "not told" : task.ttlMs === null ? "no limit" : duration(task.ttlMs * 1000)}</dd></div>
        </dl>
      )}
      {whole && <p class="small"><span class="muted">Task ID</span> <code class="uri">{visible(task.id)}</code></p>}
      {task.message && <p class="note"><span class="muted small">Message</span> <span data-testid="task-message">{visible(task.message)}</span></p>}
      {task.status === "input_required" && <p class="note warning"><Icon name="bell" size={14} /> {following ? "The server asks for input: answer at the bottom right." : "The server asks for input. Follow the task to be asked."}</p>}
      {!over && live && !following && task.status !== "input_required" && <p class="small muted">Nobody polls this task: its state may be older than it looks.</p>}
      {followed?.problem && <Problem diagnostic={followed.problem} />}
      {whole && task.arguments !== undefined && <section class="block"><div class="block-bar"><span class="block-kind">arguments</span></div><Tree value={task.arguments} open={3} /></section>}
      {task.error && <div class="problem" role="alert"><p class="problem-line"><Icon name="alert" /><strong>{visible(task.error.message)}</strong><code>{task.error.code}</code></p>{task.error.data !== undefined && <Tree value={task.error.data} />}</div>}
      {shown && <div class="task-result" data-testid="task-outcome" data-status={status}>{task.result?.isError === true && <p><Badge kind="error">tool error</Badge></p>}<Shown result={shown as JsonObject} method="tools/call" outputSchema={isObject(tool?.outputSchema) ? tool.outputSchema : undefined} /><Repeated names={twice} /></div>}
      {missing && !live && <p class="muted small">Its result was not fetched in this session.</p>}
    </section>
  );
}
