"""A server over stdio whose tools ask the client: a form, a model, the roots. Of the legacy era, or with `modern` of 2026-07-28."""
import json
import sys

MODERN = "modern" in sys.argv
# A second version of the same server: a tool is gone, one is new, and one requires another argument.
SECOND = "second" in sys.argv
FORM = {"type": "object", "properties": {"color": {"type": "string", "default": "blue"}}, "required": ["color"]}
STRICT = {"type": "object", "properties": {"color": {"type": "string", "default": "blue"}, "name": {"type": "string"}}, "required": ["color", "name"]}
ASKS = {
    "ask": ("elicitation/create", {"mode": "form", "message": "Which color?", "requestedSchema": FORM}),
    "ask-strictly": ("elicitation/create", {"mode": "form", "message": "Which name?", "requestedSchema": STRICT}),
    "sample": ("sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello?"}}], "maxTokens": 10}),
    "roots": ("roots/list", {}),
}
CHANGED = 0
NUMBER = 0
DECLARED = {}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive():
    """The next message; the end of input ends the server."""
    global CHANGED
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "notifications/roots/list_changed":
            CHANGED += 1
        return message
    sys.exit(0)


def asked(method, params):
    """Asks the client, in the legacy era, and waits for its response."""
    global NUMBER
    NUMBER += 1
    send({"id": f"ask-{NUMBER}", "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == f"ask-{NUMBER}" and "method" not in message:
            return message.get("result", {"error": message.get("error")})


def text(value):
    return {"content": [{"type": "text", "text": value}], **({"resultType": "complete"} if MODERN else {})}


def tools():
    names = [name for name in ASKS if not (SECOND and name == "sample")] + (["extra"] if SECOND else []) + ["state"]
    schema = {"type": "object", "properties": {"why": {"type": "string"}}, **({"required": ["why"]} if SECOND else {})}
    return {"tools": [{"name": name, "description": f"Tool {name}", "inputSchema": schema if name == "roots" else {"type": "object"}} for name in names]}


def reply(method, params):
    global DECLARED
    if MODERN:
        cached = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        DECLARED = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        if method == "server/discover":
            info = {"io.modelcontextprotocol/serverInfo": {"name": "answers", "version": "1"}}
            return {**cached, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "_meta": info}
        if method == "tools/list":
            return {**cached, **tools()}
    elif method == "initialize":
        DECLARED = params["capabilities"]
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "answers", "version": "2" if SECOND else "1"}}
    elif method == "tools/list":
        return tools()
    if method != "tools/call":
        return None
    name = params["name"]
    if name == "state":
        return text(f"changed {CHANGED}, roots {json.dumps(DECLARED.get('roots'))}")
    method, question = ASKS[name]
    if not MODERN:
        return text(f"got {json.dumps(asked(method, question))}")
    given = params.get("inputResponses", {}).get("it")
    if given is None:
        return {"resultType": "input_required", "inputRequests": {"it": {"method": method, "params": question}}}
    return text(f"got {json.dumps(given)}")


while True:
    message = receive()
    if "id" not in message or "method" not in message:
        continue
    result = reply(message["method"], message.get("params", {}))
    send({"id": message["id"], **({"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}})})
