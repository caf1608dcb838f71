// What the client responded to requests of the server while a call was under way, as suites and the libraries write it.
import { isObject, type Call, placeOf } from "./calls";
import { own, read, write } from "./lossless";
import { masked } from "./secrets";
import type { Task } from "./tasks";
import type { Json, JsonObject } from "./types";

export interface Answers {
  elicitation?: Json;
  sampling?: Json;
  roots?: Json;
  /** Kinds that were asked for more than once, with responses that have no common form: the last one stands here. */
  unlike?: string[];
}

const KINDS: Record<string, "elicitation" | "sampling" | "roots"> = { "elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots" };

/** A response as it is written in a suite, with variables for what the form declares as passwords. */
function written(kind: "elicitation" | "sampling" | "roots", response: JsonObject, asked: Json | undefined): Json | undefined {
  const result = isObject(response.result) ? response.result : undefined;
  if (kind === "sampling") {
    if (!result) return "reject";
    const { content } = result;
    const isUsual = result.model === "mcproof" && result.stopReason === "endTurn" && isObject(content) && content.type === "text" && Object.keys(content).length === 2;
    return isUsual && content.text !== "reject" ? content.text : result;
  }
  if (!result) return undefined;
  if (kind === "roots") return Array.isArray(result.roots) ? result.roots.map((root) => (isObject(root) && Object.keys(root).length === 1 && root.uri !== undefined ? root.uri : root)) : undefined;
  if (result.action !== "accept") return result.action;
  return isObject(result.content) && Object.keys(result.content).length > 0 ? masked(result.content, isObject(asked) ? asked.requestedSchema : undefined) : "accept";
}

function parsed(text: string | undefined): JsonObject {
  try {
    const value = read(text ?? "null");
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

const paramsOf = (call: Call): JsonObject => {
  const { params } = parsed(call.request);
  return isObject(params) ? params : {};
};

function taskOf(call: Call): Json | undefined {
  const { _meta } = paramsOf(call);
  const task = isObject(_meta) ? _meta["io.modelcontextprotocol/related-task"] : undefined;
  return isObject(task) ? task.taskId : undefined;
}

/** The responses to what the server asked during a call, or during the task that it has become. */
export function answersOf(calls: Call[], call: Call, task?: string): Answers | undefined {
  const given: [method: string, response: JsonObject, asked: Json | undefined, policy?: Json][] = [];
  // Since 2026-07-28, the call is sent again with the responses to what its result asked for.
  for (let at: Call | undefined = call; at; ) {
    const { inputResponses } = paramsOf(at);
    if (!isObject(inputResponses)) break;
    const keys = Object.keys(inputResponses);
    const later: Call = at;
    let asked: JsonObject = {};
    at = calls.slice(0, placeOf(calls, later.key)).findLast((one) => {
      if (one.status !== "input-required" || one.method !== later.method || one.target !== later.target) return false;
      const { result } = parsed(one.response);
      asked = isObject(result) && isObject(result.inputRequests) ? result.inputRequests : {};
      return keys.every((key) => own(asked, key) !== undefined);
    });
    // Those of one method come in the order of the questions; with fewer, nobody knows which one the user answered.
    const policies = [...(at?.policies ?? [])];
    const asks = (method: Json | undefined) => keys.filter((key) => (own(asked, key) as JsonObject | undefined)?.method === method).length;
    const taken = policies.filter(([method]) => policies.filter(([other]) => other === method).length === asks(method));
    const round: typeof given = [];
    for (const key of keys) {
      const request = own(asked, key);
      const response = inputResponses[key]!;
      if (!isObject(request)) continue;
      const by = taken.findIndex(([method]) => method === request.method);
      const policy = by < 0 ? undefined : taken.splice(by, 1)[0]![1];
      round.push([String(request.method), isObject(response) && isObject(response.error) ? response : { result: response }, request.params, policy]);
    }
    given.unshift(...round);
  }
  for (const one of calls.slice(call.key)) {
    if (one.direction !== "from-server" || one.kind !== "request" || one.app || one.response === undefined) continue;
    if (one.parent === call.key || (task !== undefined && taskOf(one) === task)) given.push([one.method, parsed(one.response), paramsOf(one), one.policies?.[0]?.[1]]);
  }
  const answers: Answers = {};
  const unlike = new Set<string>();
  for (const [method, response, asked, policy] of given) {
    const kind = own(KINDS, method);
    const next = policy ?? (kind && written(kind, response, asked));
    if (!kind || next === undefined) continue;
    const before = answers[kind];
    // Values of several forms stand side by side.
    if (kind === "elicitation" && isObject(before) && isObject(next) && Object.keys(next).every((name) => own(before, name) === undefined || write(before[name]) === write(next[name]))) answers[kind] = { ...before, ...next };
    else {
      if (before !== undefined && write(before) !== write(next)) unlike.add(kind);
      answers[kind] = next;
    }
  }
  if (unlike.size > 0) answers.unlike = [...unlike];
  return Object.keys(answers).length > 0 ? answers : undefined;
}

/** The call during which a server asks this, as far as the traffic shows it. */
export function askedDuring(calls: Call[], { method, params }: { method: string; params: JsonObject }, tasks?: Iterable<Task>): Call | undefined {
  const same = (asked: Json | undefined) => isObject(asked) && asked.method === method && write(isObject(asked.params) ? asked.params : {}) === write(params);
  const called = (key: number | undefined) => calls.find((call) => call.key === key);
  // The question that waits is the newest of its kind.
  for (let index = calls.length - 1; index >= 0; index--) {
    const call = calls[index]!;
    if (call.app || call.kind !== "request") continue;
    if (call.direction === "from-server") {
      if (call.status !== "pending" || call.method !== method || !same(parsed(call.request))) continue;
      const task = taskOf(call);
      for (const one of task === undefined ? [] : (tasks ?? [])) if (one.id === task && one.call !== undefined) return called(one.call);
      return called(call.parent);
    }
    if (call.status !== "input-required" && !call.response?.includes('"inputRequests"')) continue;
    const { result } = parsed(call.response);
    if (!isObject(result) || !isObject(result.inputRequests) || !Object.values(result.inputRequests).some(same)) continue;
    if (call.method !== "tasks/get") return call;
    // Since 2026-07-28, a task asks in its state.
    for (const one of tasks ?? []) if (one.id === call.target) return called(one.call);
    return undefined;
  }
  return undefined;
}

/** Without what only the page knows. */
export function declared({ unlike: _, ...answers }: Answers): JsonObject {
  return answers as JsonObject;
}
