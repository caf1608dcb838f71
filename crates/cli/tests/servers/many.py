"""An MCP server with as many tools as it is told to have, besides some whose names and answers are as odd as can be."""

import json
import os
import sys
import time
import uuid

NAMES = ["no", "a: b", "#c", "- d", "${env.HOME}", "/e/", '"f\\', "\u202eg\x1b[31m\n", "h" * 300, "日本", "$regex", "{i}", "'j"]
calls = 0


def text(value):
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def odd(arguments):
    return text({name: name for name in NAMES} | {"all": NAMES, "$schema": True, "": [], "x": {}})


def counted(arguments):
    global calls
    calls += 1
    return text({"calls": calls, "process": os.getpid(), "steady": True})


def now(arguments):
    return text({"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "day": time.strftime("%A"), "id": str(uuid.uuid4())})


def promised(arguments):
    return text("no structured content") | {"structuredContent": {"count": "three"}}


ODD = {
    "odd-answer": odd,
    "counted": counted,
    "now": now,
    "broken-promise": promised,
    "environment": lambda arguments: text({**os.environ}),
    "environment-text": lambda arguments: text("\n".join(f"{name}={value}" for name, value in os.environ.items())),
    "token": lambda arguments: text("the token is " + os.environ.get("SOME_TOKEN", "nowhere")),
    "plain-setting": lambda arguments: text("it runs in " + os.environ.get("ROOM", "no room")),
    "nothing": lambda arguments: {"content": []},
    "image": lambda arguments: {"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]},
    "pattern": lambda arguments: text("/.*/"),
    "variable": lambda arguments: text("${nope} $${n} ${"),
    "lines": lambda arguments: text("first: line\n" * 100),
    "endless": lambda arguments: text("x" * 5000),
    "numbers": lambda arguments: text([1e300, -0.0, 2**63, 0.1, 1.0, None, True]),
    "no-content": lambda arguments: {},
    "refuses": lambda arguments: text("no") | {"isError": True},
    "asks-for-input": lambda arguments: {"resultType": "input_required", "inputRequests": {}},
}


def tools():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "t": {"type": "string"}}, "required": ["n"]}
    read = {"readOnlyHint": True}
    found = [{"name": f"tool-{n}", "inputSchema": schema, "annotations": read} for n in range(int(sys.argv[1]))]
    found += [{"name": name, "description": name, "inputSchema": {"type": "object"}, "annotations": read} for name in ODD]
    found += [{"name": name, "description": name, "inputSchema": schema, "annotations": read} for name in NAMES]
    found += [{"name": "writes " + name, "inputSchema": {"type": "object", "properties": {name: {"type": name}}, "required": [name]}} for name in NAMES]
    promise = {"type": "object", "properties": {"count": {"type": "integer"}}}
    return [tool | ({"outputSchema": promise} if tool["name"] == "broken-promise" else {}) for tool in found]


def answer(method, params):
    if method == "initialize":
        name = "../many \u202e#servers: ${env.HOME}"
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    if method == "tools/list":
        # Pages of fifty, as large servers have them.
        start, found = int(params.get("cursor", 0)), tools()
        more = {"nextCursor": str(start + 50)} if start + 50 < len(found) else {}
        return {"tools": found[start : start + 50]} | more
    name, arguments = params["name"], params.get("arguments", {})
    if name in ODD:
        return ODD[name](arguments)
    if "n" not in arguments:
        return text("`n` is missing") | {"isError": True}
    return text(f"{name} says {arguments['n']}")


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    known = [tool["name"] for tool in tools()] if message["method"] == "tools/call" else []
    if message["method"] == "tools/call" and message["params"]["name"] not in known:
        reply["error"] = {"code": -32602, "message": "no such tool"}
    elif message["method"] in ("initialize", "tools/list", "tools/call"):
        reply["result"] = answer(message["method"], message.get("params", {}))
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
