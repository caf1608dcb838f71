"""A sound server of revision 2025-11-25 but for one oddity, over stdio, Streamable HTTP (`--http PORT`) or HTTP+SSE (`--sse PORT`).

    python3 odd.py ODDITY [--http PORT | --sse PORT]

Written by hand, byte by byte, because no SDK writes what is odd.
"""

import json
import os
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ODDITY = sys.argv[1]
TOOLS = [{"name": "echo", "description": "says it again", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
if ODDITY == "ascii-only":
    TOOLS[0]["inputSchema"] = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
if ODDITY == "half-character":
    # Half of a surrogate pair, as JavaScript leaves it where a text is cut within an emoji.
    TOOLS[0]["description"] = "says it again \ud83d"
FORM = {"type": "object", "properties": {"done": {"type": "boolean"}}}
if ODDITY == "form":
    TOOLS.append({"name": "form", "description": "asks the user", "inputSchema": FORM})
STARTED = time.monotonic()
CALLS = []


NOTES = {}


def noted(params, session):
    """Sets or gets a value, in the session or, as the oddity has it, in one dictionary for all."""
    arguments, owner = params["arguments"], None if ODDITY == "one-dictionary" else session
    if params["name"] == "set":
        NOTES[owner, arguments["key"]] = arguments["value"]
        return {"content": [{"type": "text", "text": "set"}]}
    value = NOTES.get((owner, arguments["key"]))
    return {"content": [{"type": "text", "text": value or "no value"}], "isError": value is None}


def result_of(method, params, session=None):
    """The result of a request, or nothing if there is no such method."""
    if method == "tools/call" and params["name"] in ("set", "get"):
        return noted(params, session)
    if method == "initialize":
        found = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
        if ODDITY == "unknown-version":
            found["protocolVersion"] = "2031-01-01"
        if ODDITY == "echoed-version":
            found["protocolVersion"] = params.get("protocolVersion")
        for missing, key in [("no-server-info", "serverInfo"), ("no-capabilities", "capabilities"), ("no-version", "protocolVersion")]:
            if ODDITY == missing:
                del found[key]
        if ODDITY == "capabilities-list":
            found["capabilities"] = []
        return found
    if method == "tools/list":
        if ODDITY == "slow-list":
            time.sleep(1)
        return {"tools": TOOLS, "nextCursor": None} if ODDITY == "null-cursor" else {"tools": TOOLS}
    if method == "tools/call":
        said = {"content": [{"type": "text", "text": "said again"}]}
        said.update({"is-error-in-text": {"isError": "true"}, "text-is-number": {"content": [{"type": "text", "text": 5}]}}.get(ODDITY, {}))
        return said
    if method == "resources/read":
        return {} if ODDITY == "no-contents" else {"contents": [{"uri": params["uri"], "text": "secret"}]}
    return {} if method == "ping" else None


def answer(message, session=None):
    """The answer to a message, as an object."""
    known, found = message.get("id"), result_of(message.get("method"), message.get("params") or {}, session)
    if found is None:
        return {"jsonrpc": "2.0", "id": known, "error": {"code": -32601, "message": "method not found"}}
    reply = {"jsonrpc": "2.0", "id": known, "result": found}
    if ODDITY == "no-jsonrpc":
        del reply["jsonrpc"]
    elif ODDITY == "jsonrpc-1":
        reply["jsonrpc"] = "1.0"
    elif ODDITY == "jsonrpc-number":
        reply["jsonrpc"] = 2.0
    elif ODDITY == "string-id" and isinstance(known, int):
        reply["id"] = str(known)
    elif ODDITY == "float-id" and isinstance(known, int):
        reply["id"] = float(known)
    elif ODDITY == "extra-member":
        reply["took_ms"] = 3
    elif ODDITY == "null-error":
        reply["error"] = None
    return reply


AROUND = {"prefix": b"INFO: %s", "colors": b"\x1b[32m%s\x1b[0m", "event-on-stdio": b"data: %s"}


def written(message):
    text = json.dumps(message, indent=2 if ODDITY == "pretty" else None)
    return ("\ufeff" + text if ODDITY == "bom" else text).encode()


def stdio():
    out = sys.stdout.buffer

    def ask():
        fields = {"newsletter": {"type": "boolean"}, "email": {"type": "string"}}
        params = {"message": "Who?", "requestedSchema": {"type": "object", "properties": fields}}
        write(written({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create", "params": params}) + b"\n")
        sys.stdin.buffer.readline()

    def write(data):
        out.write(data)
        out.flush()

    if ODDITY == "noise-first":
        write(b"odd server 1.0 is starting\n")
    first = True
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if ODDITY == "noise" and not first:
            write(b"[info] " + str(message.get("method")).encode() + b"\n")
        if ODDITY == "json-noise":
            write(b'{"level": "info", "message": "asked"}\n')
        first = False
        if "id" not in message or "method" not in message:
            continue
        if message["method"] == "tools/call" and message["params"]["name"] == "slow":
            token = message["params"].get("_meta", {}).get("progressToken")
            for step in range(6):
                time.sleep(0.25)
                if token is not None:
                    told = {"progressToken": token, "progress": step}
                    write(written({"jsonrpc": "2.0", "method": "notifications/progress", "params": told}) + b"\n")
        if message["method"] == "tools/call":
            CALLS.append(message)
            if message["params"]["name"] == "form" and not message["params"].get("arguments", {}).get("done"):
                ask()
            if ODDITY == "answers-once" and len(CALLS) > 1:
                continue
            if ODDITY == "ascii-only" and not str(message["params"].get("arguments", {})).isascii():
                continue
            if ODDITY == "logs":
                write(b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "disk full"}}\n')
            if ODDITY == "fails-later":
                threading.Timer(0.5, lambda: os._exit(1)).start()
        data = written(answer(message))
        if ODDITY == "twice-each":
            write(data + b"\n" + data + b"\n")
        elif ODDITY == "blank-lines":
            write(b"\n" + data + b"\n\n")
        elif ODDITY == "crlf":
            write(data + b"\r\n")
        elif ODDITY == "padded":
            write(b"   " + data + b" \t\n")
        elif ODDITY == "batch":
            write(b"[" + data + b"]\n")
        elif ODDITY == "no-newline":
            write(data)
        elif ODDITY in AROUND:
            write(AROUND[ODDITY] % data + b"\n")
        elif ODDITY == "headers":
            write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        elif ODDITY == "quotes":
            write(repr(json.loads(data)).encode() + b"\n")
        elif ODDITY == "utf-16":
            write((data.decode() + "\n").encode("utf-16"))
        elif ODDITY == "logs-what-it-sends":
            write(b"sending " + data + b"\n" + data + b"\n")
        else:
            write(data + b"\n")
        if ODDITY == "ends-after-call" and message["method"] == "tools/call":
            sys.exit(3)
    if ODDITY == "fails-at-end" and CALLS:
        sys.stderr.write("Error: the connection was never closed\n")
        sys.exit(1)


def event(data):
    """One server-sent event."""
    text = data.decode()
    if ODDITY == "no-blank-line":
        return b"event: message\ndata: " + data + b"\n"
    if ODDITY == "no-data":
        return b"event: message\n" + data + b"\n\n"
    if ODDITY == "data-case":
        return b"event: message\nData: " + data + b"\n\n"
    if ODDITY == "event-missing":
        return b"data: " + data + b"\n\n"
    if ODDITY == "event-other":
        return b"event: response\ndata: " + data + b"\n\n"
    if ODDITY == "event-fields":
        return b"event: message\ntopic: tools\nid: 7\nretry: 500\ndata: " + data + b"\n\n"
    if ODDITY == "event-crlf":
        return b"event: message\r\ndata: " + data + b"\r\n\r\n"
    if ODDITY == "event-no-space":
        return b"event:message\ndata:" + data + b"\n\n"
    if ODDITY == "event-comment":
        return b": hello\n\nevent: message\ndata: " + data + b"\n\n"
    lines = "".join(f"data: {line}\n" for line in text.split("\n"))
    return b"event: message\n" + lines.encode() + b"\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind=None, body=b"", more=()):
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, data, stays=False):
        """An event stream without a length, that ends with its connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        if stays:
            time.sleep(20)
        self.close_connection = True

    def do_GET(self):
        if MODE == "--sse" and self.path == "/sse":
            return self.sse()
        self.reply(405)

    def do_DELETE(self):
        self.reply(405)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        if ODDITY == "503-at-first" and time.monotonic() - STARTED < 1:
            return self.reply(503, "text/plain", b"starting")
        if ODDITY == "reset-at-first" and time.monotonic() - STARTED < 1:
            self.close_connection = True
            return self.connection.close()
        is_request = "id" in message and "method" in message
        if MODE == "--sse":
            if is_request and ODDITY == "answer-in-post":
                return self.reply(200, "application/json", written(answer(message)))
            if is_request:
                data = written(answer(message))
                with LOCK:
                    STREAMS[-1].write(event(data))
                    STREAMS[-1].flush()
                if ODDITY == "answer-in-both":
                    return self.reply(200, "application/json", data)
            return self.reply(202)
        if not is_request:
            if ODDITY == "200-for-notification":
                return self.reply(200)
            if ODDITY == "204-for-notification":
                return self.reply(204)
            if ODDITY == "body-for-notification":
                return self.reply(200, "application/json", b"{}")
            return self.reply(202)
        if ODDITY == "host-refused":
            return self.reply(403, "text/plain", b"Invalid Host header")
        if ODDITY == "accepted":
            return self.reply(202)
        data = written(answer(message, self.headers.get("Mcp-Session-Id")))
        if ODDITY in ("twice", "wrapped"):
            data = json.dumps(data.decode() if ODDITY == "twice" else {"statusCode": 200, "body": data.decode()}).encode()
        if message["method"] == "initialize" and ODDITY in ("sessions", "one-dictionary"):
            return self.reply(200, "application/json", data, [("Mcp-Session-Id", uuid.uuid4().hex)])
        kinds = {
            "no-type": None,
            "text-plain": "text/plain",
            "charset": "application/json; charset=utf8",
            "latin-1": "application/json; charset=iso-8859-1",
            "upper-type": "Application/JSON",
            "rpc-type": "application/json-rpc",
        }
        if ODDITY in kinds:
            return self.reply(200, kinds[ODDITY], data)
        if ODDITY == "json-as-events":
            return self.reply(200, "text/event-stream", data)
        if ODDITY == "json-as-open-events":
            return self.stream(data, stays=True)
        if ODDITY == "events-as-json":
            return self.reply(200, "application/json", event(data))
        if ODDITY == "events-as-text":
            return self.reply(200, "text/plain", event(data))
        if ODDITY == "events-charset":
            return self.reply(200, "text/event-stream; charset=utf-8", event(data))
        if ODDITY == "201":
            return self.reply(201, "application/json", data)
        if ODDITY == "batch":
            return self.reply(200, "application/json", b"[" + data + b"]")
        if ODDITY in ("no-blank-line", "no-data", "data-case", "event-open"):
            return self.stream(event(data) if ODDITY != "event-open" else b"data: " + data, stays="--stays" in sys.argv)
        if ODDITY.startswith("event"):
            return self.stream(event(data))
        self.reply(200, "application/json", data)

    def sse(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        end = "\n" if ODDITY == "endpoint-open" else "\n\n"
        field = "" if ODDITY == "endpoint-no-data" else "data: "
        self.wfile.write(f"event: endpoint\n{field}/messages{end}".encode())
        self.wfile.flush()
        STREAMS.append(self.wfile)
        while True:
            time.sleep(1)


MODE = next((word for word in sys.argv if word in ("--http", "--sse")), None)
STREAMS, LOCK = [], threading.Lock()
if MODE is None:
    stdio()
else:
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index(MODE) + 1])), Handler).serve_forever()
