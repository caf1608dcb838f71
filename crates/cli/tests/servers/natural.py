"""A small server as people write them, with one mistake that people make: named by the first argument. With a port, it serves HTTP there."""

import json
import os
import signal
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

mistake = sys.argv[1]
if mistake == "prints-and-fails":
    print("Loading the configuration", flush=True)
    sys.exit("KeyError: 'NOTES_FILE'")

if mistake == "beside-an-sdk":
    # For validation, say.
    import pydantic_core  # noqa: F401

text = {"type": "object", "properties": {"text": {"type": "string", "description": "What to look for"}}, "required": ["text"]}
tools = [
    # Most authors say no more of a tool than that it reads.
    {"name": "find", "description": "Finds notes.", "inputSchema": text, "annotations": {"readOnlyHint": True}},
    {"name": "add", "description": "Adds a note.", "inputSchema": text, "annotations": {"readOnlyHint": False, "destructiveHint": False}},
]
if mistake == "choices-are-not-checked":
    text["properties"]["count"] = {"type": "integer", "description": "How many", "minimum": 1, "maximum": 9}
    text["properties"]["order"] = {"enum": ["up", "down"], "description": "Which first"}
if mistake == "changes-its-texts":
    tools[0]["description"] += f" Process {os.getpid()}."
if mistake == "nulls":
    tools = [tool | {"title": None, "outputSchema": None} for tool in tools]
if mistake == "eight-never-respond":
    tools += [tools[0] | {"name": f"read_{number}"} for number in range(8)]
if mistake == "names-a-secret":
    tools += [tools[0] | {"name": os.environ["API_TOKEN"]}]
served = 0
taken = 0


def answer(method, params):
    if method == "initialize":
        offered = params.get("protocolVersion")
        version = offered if offered in ("2025-03-26", "2025-06-18", "2025-11-25") else "2025-11-25"
        capabilities = {"tools": {}} | ({"resources": {}} if mistake == "templates-are-missing" else {})
        return {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "notes", "version": "1"}}}
    global served
    served += 1
    if mistake == "limits-its-rate" and served > 15:
        return {"error": {"code": -32000, "message": "Rate limit exceeded: try again in 60 s"}}
    if method == "ping":
        return {"result": {}}
    if method == "tools/call" and params.get("name", "").startswith("read_") and mistake == "eight-never-respond":
        return None
    if method == "tools/list" and mistake == "has-no-database":
        return {"error": {"code": -32603, "message": "the database is down"}}
    if method == "tools/list":
        return {"result": {"tools": tools}}
    if mistake == "templates-are-missing" and method.startswith("resources/"):
        return {"result": {"resources": []} if method == "resources/list" else {}}
    if method == "tools/call" and params.get("name") in [tool["name"] for tool in tools]:
        arguments = params.get("arguments", {})
        if not isinstance(arguments.get("text"), str):
            return {"result": {"content": [{"type": "text", "text": "`text` has to be a string"}], "isError": True}}
        if arguments.get("count", 1) not in range(1, 10):
            return {"result": {"content": [{"type": "text", "text": "`count` is from 1 to 9"}], "isError": True}}
        if mistake == params["name"] + "-never-responds":
            return None
        if mistake == "uses-up-a-pool":
            # A connection is taken for each call, and never given back.
            global taken
            taken += 1
            if taken > 5:
                return None
        if mistake == "every-call-breaks":
            return {"error": {"code": -32603, "message": "NOTES_FILE is not set"}}
        return {"result": {"content": [{"type": "text", "text": "No notes."}]}}
    if method == "tools/call":
        return {"error": {"code": -32602, "message": f"Unknown tool: {params.get('name')}"}}
    return {"error": {"code": -32602 if mistake == "beside-an-sdk" else -32601, "message": f"Method not found: {method}"}}


def respond(message):
    """The response to a message; `None` for what gets none."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or message.get("id", 0) is None:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Invalid request"}}
    reply = answer(message["method"], message.get("params", {})) if "id" in message and "method" in message else None
    return reply and {"jsonrpc": "2.0", "id": message["id"]} | reply


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served = 0
    calls = 0
    kept = {}
    open = []
    lock = threading.Lock()
    on_connection = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Handler.served += 1
        self.on_connection += 1
        if mistake == "hangs-on-reuse" and self.on_connection > 1:
            threading.Event().wait()
        if mistake == "is-gone-later" and Handler.served > 10:
            return self.reply(200, "<h1>We will be back soon</h1>", "text/html")
        if mistake == "resets-calls" and b'"tools/call"' in body:
            Handler.calls += 1
            if Handler.calls % 4 == 0:
                self.close_connection = True
                return self.connection.shutdown(socket.SHUT_RDWR)
        if mistake == "fails-now-and-then" and Handler.served % 7 == 0:
            return self.reply(500, "Internal Server Error", "text/plain")
        if mistake == "is-behind-a-limit" and Handler.served % 7 == 0:
            return self.reply(503, "<html><h1>503 Service Temporarily Unavailable</h1></html>", "text/html")
        names = [f"{name}:{sys.argv[2]}" for name in ("127.0.0.1", "localhost")]
        origin = self.headers.get("Origin")
        if self.headers.get("Host") not in names or (origin and origin.removeprefix("http://") not in names):
            return self.reply(403)
        if self.headers.get("Content-Type", "").split(";")[0].lower() != "application/json":
            return self.reply(415)
        if self.headers.get("MCP-Protocol-Version", "2025-11-25") not in ("2025-03-26", "2025-06-18", "2025-11-25"):
            return self.reply(400)
        try:
            reply = respond(json.loads(body))
        except ValueError:
            reply = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}}
        if reply is None:
            return self.reply(202)
        if mistake == "responds-on-another-stream" and b'"tools/call"' in body and "text/event-stream" in self.headers.get("Accept", ""):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            with Handler.lock:
                Handler.open.append(self.wfile)
            time.sleep(0.1)
            # The stream of the request that came last is taken for that of the session.
            with Handler.lock:
                Handler.open[-1].write(f"data: {json.dumps(reply)}\n\n".encode())
                Handler.open.remove(self.wfile)
            self.close_connection = True
            return None
        if mistake == "lets-clients-poll" and reply["id"] is not None and "result" in reply and b'"initialize"' not in body:
            # No mistake: the connection is closed after an event with an id, and the response comes to who asks for the rest of the stream.
            if "text/event-stream" in self.headers.get("Accept", ""):
                place = f"{uuid.uuid4().hex}-0"
                Handler.kept[place] = reply
                return self.reply(200, f"id: {place}\nretry: 20\ndata:\n\n", "text/event-stream")
        return self.reply(400 if reply["id"] is None else 200, json.dumps(reply), "application/json")

    def do_GET(self):
        place = self.headers.get("Last-Event-ID")
        if place in Handler.kept:
            text = f"id: {place[:-1]}1\ndata: {json.dumps(Handler.kept[place])}\n\n"
            return self.reply(200, text, "text/event-stream")
        if mistake != "stream-takes-all":
            return self.reply(405)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        while True:
            self.wfile.write(b": still here\n\n")
            time.sleep(0.1)

    def do_DELETE(self):
        self.reply(405)

    def reply(self, status, text="", kind=None):
        self.send_response(status)
        if status == 405:
            self.send_header("Allow", "POST")
        if kind:
            self.send_header("Content-Type", kind)
        if mistake == "labels-compression" and "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


if len(sys.argv) > 2:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    one_at_a_time = mistake in ("serves-one-connection", "stream-takes-all")
    (HTTPServer if one_at_a_time else ThreadingHTTPServer)(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()

for line in sys.stdin:
    try:
        reply = respond(json.loads(line))
    except ValueError:
        continue
    if reply is not None:
        print(json.dumps(reply), flush=True)
