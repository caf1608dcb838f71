"""A shop that takes each order as often as it is sent. The first argument says what shows the orders."""

import json
import sys
from datetime import datetime

shown_by = sys.argv[1]
orders = reads = 0
tools = [{"name": "create_order", "description": "Creates an order.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False}}]
if shown_by != "nothing":
    tools.append({"name": "list_orders", "description": "Lists orders.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}})


def text(said):
    return {"result": {"content": [{"type": "text", "text": said}]}}


def call(name):
    global orders, reads
    if name == "create_order":
        orders += 0 if shown_by == "one-order" and orders else 1
        return text("ok")
    reads += 1
    said = f"{orders} orders"
    if shown_by == "a-clock":
        said += f" at {datetime.now().isoformat()}"
    if shown_by == "seconds":
        said += f" at {datetime.now():%H:%M:%S}"
    if shown_by == "a-counter":
        said += f", read {reads} times"
    if shown_by == "an-error":
        return {"error": {"code": -32000, "message": "no database"}}
    return text(said)


def answer(method, params):
    if method == "initialize":
        info = {"name": "orders", "version": "1"}
        offered = params.get("protocolVersion")
        version = offered if offered in ("2025-03-26", "2025-06-18", "2025-11-25") else "2025-11-25"
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": tools}}
    if method == "tools/call":
        if params.get("name") in [tool["name"] for tool in tools]:
            return call(params["name"])
        return {"error": {"code": -32602, "message": "unknown tool"}}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if isinstance(message, dict) and "id" in message and "method" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer(message["method"], message.get("params", {}))), flush=True)
