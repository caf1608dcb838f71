"""An MCP server over stdio of a size: server.py TOOLS [sound|flawed]. Each tool of a flawed one breaks a rule."""

import json
import sys

count = int(sys.argv[1])
flawed = sys.argv[2:] == ["flawed"]


def tool(number):
    schema = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}}
    described = {
        "name": f"tool_{number}",
        "description": f"Finds what belongs to number {number}, and tells how much of it there is.",
        "inputSchema": {**schema, "required": ["nowhere"]} if flawed else {**schema, "required": ["query"]},
    }
    described["annotations"] = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
    if flawed:
        described["inputSchema"]["properties"]["query"] = {"type": "text"}
    return described


TOOLS = [tool(number) for number in range(count)]
NAMES = {tool["name"] for tool in TOOLS}
WRONG = {"code": -32602, "message": "Invalid params"}
SERVER = {"name": "grown", "version": "1.0.0"}
PAGE = 500


def answer(method, params):
    """A result, or an error."""
    if method == "initialize":
        known = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
        asked = params.get("protocolVersion")
        return {"protocolVersion": asked if asked in known else known[0], "capabilities": {"tools": {}}, "serverInfo": SERVER}, None
    if method == "ping":
        return {}, None
    if method == "tools/list":
        cursor = params.get("cursor", "0")
        if not isinstance(cursor, str) or not cursor.isdecimal() or int(cursor) % PAGE or int(cursor) > count:
            return None, WRONG
        start = int(cursor)
        page = {"tools": TOOLS[start : start + PAGE]}
        return ({**page, "nextCursor": str(start + PAGE)} if start + PAGE < count else page), None
    if method == "tools/call":
        if params.get("name") not in NAMES:
            return None, WRONG
        return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}, None
    return None, {"code": -32601, "message": "Method not found"}


for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        print(json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}), flush=True)
        continue
    if not isinstance(message, dict) or "id" not in message or "method" not in message:
        continue
    params = message.get("params")
    result, error = answer(message["method"], params if isinstance(params, dict) else {})
    said = {"result": result} if error is None else {"error": error}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
