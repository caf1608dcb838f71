"""A sound server over stdio that does one request after the other, as any does whose tools block: `wait` takes as many seconds as the first
word says. With a second word, what it does wrongly:

- `forgets-missing`: a call without its argument gets no response
- `forgets-fourth`: nor does the fourth call with one
"""

import json
import sys
import time

SECONDS = float(sys.argv[1])
FLAW = sys.argv[2] if len(sys.argv) > 2 else ""
VERSIONS = ["2025-11-25", "2025-06-18"]
HINTS = {"readOnlyHint": True, "openWorldHint": False, "destructiveHint": False, "idempotentHint": True}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [{"name": "wait", "description": "Returns the text after a while.", "inputSchema": SCHEMA, "annotations": HINTS}]
CALLS = []


def refused(code, message):
    return {"error": {"code": code, "message": message}}


def said(text, is_error):
    return {"result": {"content": [{"type": "text", "text": text}], "isError": is_error}}


def initialized(params):
    asked = params.get("protocolVersion")
    version = asked if asked in VERSIONS else VERSIONS[0]
    return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "serial", "version": "1"}}}


def called(params):
    text = (params.get("arguments") or {}).get("text")
    if params.get("name") != "wait":
        return refused(-32602, "unknown tool")
    if text is None and FLAW == "forgets-missing":
        return None
    if not isinstance(text, str):
        return said("`text` must be a string", True)
    CALLS.append(text)
    if len(CALLS) == 4 and FLAW == "forgets-fourth":
        return None
    time.sleep(SECONDS)
    return said(text, False)


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        return initialized(params)
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return refused(-32602, "no such cursor") if "cursor" in params else {"result": {"tools": TOOLS}}
    if method == "tools/call":
        return called(params)
    return refused(-32601, "Method not found")


for line in sys.stdin.buffer:
    try:
        message = json.loads(line.decode())
    except ValueError:
        continue
    if not isinstance(message, dict) or message.get("id") is None or "method" not in message:
        continue
    response = answer(message)
    if response is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **response}) + "\n")
        sys.stdout.flush()
