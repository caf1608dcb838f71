"""A server of 2026-07-28 over stdio whose calls become tasks (extension io.modelcontextprotocol/tasks)."""
import json
import sys
import time

TASKS = {}
EXTENSION = "io.modelcontextprotocol/tasks"
QUESTION = {"method": "elicitation/create", "params": {"mode": "form", "message": "Which name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}}
STATE = {"createdAt": "2026-07-28T12:00:00Z", "lastUpdatedAt": "2026-07-28T12:00:00Z", "ttlMs": 60000, "pollIntervalMs": 50}


def text(value):
    return {"resultType": "complete", "content": [{"type": "text", "text": value}]}


def state(task):
    status = {"taskId": task["id"], "status": "working", **STATE}
    over = time.monotonic() - task["began"] > 0.2
    if task["canceled"]:
        return {**status, "status": "cancelled"}
    if task["tool"] == "ask" and "name" not in task["given"]:
        return {**status, "status": "input_required", "inputRequests": {"name": QUESTION}}
    if task["tool"] == "endless" or not over:
        return {**status, "statusMessage": "still at it"}
    if task["tool"] == "fail":
        return {**status, "status": "failed", "error": {"code": -32603, "message": "it broke halfway"}}
    name = task["given"].get("name", {}).get("content", {}).get("name", "nobody")
    return {**status, "status": "completed", "result": text(f"done for {name}")}


def reply(method, params):
    declared = EXTENSION in params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {}).get("extensions", {})
    if method == "server/discover":
        return {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}}, "ttlMs": 0, "cacheScope": "private", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "tasks", "version": "1"}}}
    if method == "tools/list":
        return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{"name": name, "description": f"Is made for the test: {name}", "inputSchema": {"type": "object"}} for name in ["ask", "endless", "fail", "now", "work"]]}
    if method == "tools/call":
        if params["name"] == "now" or not declared:
            return text("at once")
        task = {"id": f"task-{len(TASKS) + 1}", "tool": params["name"], "began": time.monotonic(), "canceled": False, "given": {}}
        TASKS[task["id"]] = task
        return {"resultType": "task", "taskId": task["id"], "status": "working", **STATE}
    if method.startswith("tasks/"):
        task = TASKS[params["taskId"]]
        if method == "tasks/cancel":
            task["canceled"] = True
        elif method == "tasks/update":
            task["given"].update(params["inputResponses"])
        else:
            return {"resultType": "complete", **state(task)}
        return {"resultType": "complete"}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = reply(message["method"], message.get("params") or {})
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
