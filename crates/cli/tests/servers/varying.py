"""A sound server over stdio whose tool responds to every call, at once or later. The first word says when:

- `every-third`: two of three calls get their response at once, the third after so many seconds as the second word says
- `one-per`: the backend takes one call per so many seconds, and the others wait for their turn
"""

import json
import sys
import threading
import time

MANNER = sys.argv[1]
SECONDS = float(sys.argv[2])
VERSIONS = ["2025-11-25", "2025-06-18"]
HINTS = {"readOnlyHint": True}
PROPERTIES = {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 50}}
SCHEMA = {"type": "object", "properties": PROPERTIES, "required": ["query"]}
TOOLS = [{"name": "search", "description": "Searches an archive.", "inputSchema": SCHEMA, "annotations": HINTS}]
OUTPUT = threading.Lock()
STATE = {"calls": 0, "next": 0.0}


def send(message_id, response):
    line = json.dumps({"jsonrpc": "2.0", "id": message_id, **response}) + "\n"
    with OUTPUT:
        sys.stdout.write(line)
        sys.stdout.flush()


def refused(code, message):
    return {"error": {"code": code, "message": message}}


def said(text, is_error):
    return {"result": {"content": [{"type": "text", "text": text}], "isError": is_error}}


def initialized(params):
    asked = params.get("protocolVersion")
    version = asked if asked in VERSIONS else VERSIONS[0]
    return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "varying", "version": "1"}}}


def delay():
    STATE["calls"] += 1
    if MANNER == "every-third":
        return SECONDS if STATE["calls"] % 3 == 0 else 0
    now = time.monotonic()
    turn = max(now, STATE["next"])
    STATE["next"] = turn + SECONDS
    return turn - now


def call(message_id, params):
    arguments = params.get("arguments") or {}
    text, limit = arguments.get("query"), arguments.get("limit", 1)
    if params.get("name") != "search":
        return send(message_id, refused(-32602, "unknown tool"))
    if not isinstance(text, str):
        return send(message_id, said("`query` must be a string", True))
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 50:
        return send(message_id, said("`limit` must be an integer from 1 to 50", True))
    timer = threading.Timer(delay(), send, [message_id, said("no hits", False)])
    timer.daemon = True
    timer.start()


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return initialized(params)
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return refused(-32602, "no such cursor") if "cursor" in params else {"result": {"tools": TOOLS}}
    return refused(-32601, "Method not found")


for line in sys.stdin.buffer:
    try:
        message = json.loads(line.decode())
    except ValueError:
        continue
    if not isinstance(message, dict) or message.get("id") is None or "method" not in message:
        continue
    if message["method"] == "tools/call":
        call(message["id"], message.get("params") or {})
    else:
        send(message["id"], answer(message))
