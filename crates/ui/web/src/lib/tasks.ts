// Tasks of a server, derived from messages as they come: those of 2025-11-25 and those of the extension io.modelcontextprotocol/tasks.
import { asNumber } from "./lossless";
import { isObject, type Call } from "./calls";
import type { Handshake, Json, JsonObject } from "./types";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";
const STATUSES: TaskStatus[] = ["working", "input_required", "completed", "failed", "cancelled"];

export interface Task {
  id: string;
  /** The call that became it; a task that was only listed has none. */
  call?: number;
  tool?: string;
  arguments?: Json;
  /** As the server says it; another word than the known ones is shown as it is. */
  status: string;
  message?: string;
  /** In microseconds of the session. */
  begun: number;
  updated: number;
  ended?: number;
  createdAt?: string;
  ttlMs?: number | null;
  pollMs?: number;
  polls: number;
  /** What it waits for. */
  wants: string[];
  result?: JsonObject;
  /** The response that has it, as the server wrote it. */
  response?: string;
  error?: { code: number; message: string; data?: Json };
}

export const isOver = (task: Task) => task.status === "completed" || task.status === "failed" || task.status === "cancelled";
export const statusText = (status: string) => (STATUSES.includes(status as TaskStatus) ? status.replace("_", " ").replace("cancelled", "canceled") : status);

export class TaskBook {
  all = new Map<string, Task>();

  /** The result of a request of the client. */
  result(call: Call, result: JsonObject, params: JsonObject, at: number) {
    switch (call.method) {
      case "tools/call": {
        const made = isObject(result.task) ? result.task : result.resultType === "task" ? result : undefined;
        const task = made && this.state(made, at);
        if (!task) return;
        task.call = call.key;
        task.begun = call.start;
        task.tool = call.target;
        task.arguments = params.arguments;
        break;
      }
      case "tasks/get": {
        const task = this.state(result, at);
        if (!task) return;
        task.polls++;
        if (isObject(result.result)) [task.result, task.response] = [result.result, call.response];
        if (isObject(result.error)) task.error = { code: Number(result.error.code), message: String(result.error.message), data: result.error.data };
        break;
      }
      case "tasks/cancel":
        this.state(result, at);
        break;
      case "tasks/list":
        if (Array.isArray(result.tasks)) for (const one of result.tasks) if (isObject(one)) this.state(one, at);
        break;
      case "tasks/result": {
        const task = this.all.get(String(params.taskId));
        if (task) [task.result, task.response] = [result, call.response];
        break;
      }
    }
  }

  /** A failed call that ran as a task says so in the response to `tasks/result`. */
  failed(call: Call, error: JsonObject, params: JsonObject) {
    const task = call.method === "tasks/result" ? this.all.get(String(params.taskId)) : undefined;
    if (task) task.error = { code: Number(error.code), message: String(error.message), data: error.data };
  }

  notified(method: string, params: JsonObject, at: number) {
    if (method === "notifications/tasks/status" || method === "notifications/tasks") this.state(params, at);
  }

  private state(told: JsonObject, at: number): Task | undefined {
    const { taskId, status } = told;
    if (typeof taskId !== "string" || typeof status !== "string") return undefined;
    let task = this.all.get(taskId);
    if (!task) {
      task = { id: taskId, status, begun: at, updated: at, polls: 0, wants: [] };
      this.all.set(taskId, task);
    }
    task.status = status;
    task.updated = at;
    if (isOver(task)) task.ended ??= at;
    task.message = typeof told.statusMessage === "string" ? told.statusMessage : undefined;
    if (typeof told.createdAt === "string") task.createdAt = told.createdAt;
    const ttl = told.ttlMs !== undefined ? told.ttlMs : told.ttl;
    if (ttl !== undefined) task.ttlMs = ttl === null ? null : (asNumber(ttl) ?? task.ttlMs);
    task.pollMs = asNumber(told.pollIntervalMs ?? told.pollInterval) ?? task.pollMs;
    task.wants = isObject(told.inputRequests) ? Object.values(told.inputRequests).map((one) => (isObject(one) ? String(one.method) : "input")) : [];
    return task;
  }
}

/** Whether the server has tasks at all. */
export function hasTasks(handshake: Handshake | null): boolean {
  if (!handshake) return false;
  return handshake.era === "modern" ? hasExtension(handshake) : isObject(handshake.capabilities.tasks);
}

function hasExtension({ capabilities }: Handshake): boolean {
  return isObject(capabilities.extensions) && isObject(capabilities.extensions[TASKS_EXTENSION]);
}

/** Who decides whether a call of this tool runs as a task. */
export function taskChoice(tool: JsonObject, handshake: Handshake | null): "never" | "client" | "always" | "server" {
  if (!handshake) return "never";
  if (handshake.era === "modern") return hasExtension(handshake) ? "server" : "never";
  const tasks = handshake.capabilities.tasks;
  const requests = isObject(tasks) && isObject(tasks.requests) ? tasks.requests : {};
  if (handshake.protocolVersion !== "2025-11-25" || !isObject(requests.tools) || !isObject(requests.tools.call)) return "never";
  const support = isObject(tool.execution) ? tool.execution.taskSupport : undefined;
  return support === "required" ? "always" : support === "optional" ? "client" : "never";
}

export function canCancel(handshake: Handshake | null): boolean {
  return handshake?.era === "modern" || (isObject(handshake?.capabilities.tasks) && isObject(handshake.capabilities.tasks.cancel));
}

export function canList(handshake: Handshake | null): boolean {
  return handshake?.era === "legacy" && isObject(handshake.capabilities.tasks) && isObject(handshake.capabilities.tasks.list);
}
