"""A server of revision 2025-11-25 over stdio whose tools do what their arguments say.

    python3 obedient.py

`say` returns a text, and `fail` one as an error; `give` returns JSON as structured content, and `show` the arguments as they came;
`tell` logs, so many milliseconds after it was called; `ask` sends a request and returns what the client responds.
"""

import json
import sys
import threading

TOOLS = ["say", "fail", "give", "show", "tell", "ask"]
WRITING = threading.Lock()
WAITING = {}


def write(message):
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def later(milliseconds, message):
    if not milliseconds:
        return write(message)
    timer = threading.Timer(milliseconds / 1000, write, [message])
    timer.daemon = True
    timer.start()


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def ask(known, arguments):
    asked, WAITING[f"asked-{known}"] = threading.Event(), {}
    WAITING[f"asked-{known}"]["event"] = asked
    write({"id": f"asked-{known}", "method": arguments["method"], "params": arguments["params"]})
    asked.wait()
    response = WAITING.pop(f"asked-{known}")["response"]
    write({"id": known, "result": text(json.dumps(response.get("result", response.get("error"))))})


def call(known, name, arguments):
    if name == "ask":
        threading.Thread(target=ask, args=[known, arguments], daemon=True).start()
        return
    after = 0
    if name == "tell":
        for milliseconds, data in arguments.get("told", []):
            later(milliseconds, {"method": "notifications/message", "params": {"level": "info", "data": data}})
        after, result = arguments.get("after", 0), text("told")
    elif name == "fail":
        result = text(arguments["text"], isError=True)
    elif name == "give":
        result = text(arguments["json"], structuredContent=json.loads(arguments["json"]))
    else:
        result = text(arguments["text"] if name == "say" else json.dumps(arguments))
    later(after, {"id": known, "result": result})


def answer(message):
    known, method = message["id"], message["method"]
    if method == "initialize":
        capabilities = {"tools": {}, "logging": {}}
        result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "obedient", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    elif method == "tools/call":
        return call(known, message["params"]["name"], message["params"].get("arguments", {}))
    else:
        result = {}
    write({"id": known, "result": result})


for line in sys.stdin:
    received = json.loads(line)
    if "method" in received and "id" in received:
        answer(received)
    elif received.get("id") in WAITING:
        WAITING[received["id"]]["response"] = received
        WAITING[received["id"]]["event"].set()
