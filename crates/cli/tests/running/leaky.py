"""A small MCP server that keeps what it should let go of: files, processes, or sessions."""

import http.server
import json
import subprocess
import sys
import uuid

kept = []
sessions = set()
flags = set(sys.argv[1:])


def leak():
    if "--files" in flags:
        kept.append(open("/dev/null"))
    if "--processes" in flags:
        kept.append(subprocess.Popen(["sleep", "600"]))


def answer(message):
    """The answer to a message; None for notifications."""
    if "id" not in message:
        return None
    method = message.get("method")
    if method == "initialize":
        info = {"name": "leaky", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/call":
        leak()
        result = {"content": [{"type": "text", "text": "done"}]}
    elif method == "tools/list":
        result = {"tools": [{"name": "leak", "inputSchema": {"type": "object"}}]}
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = [("content-type", "application/json")]
        if message.get("method") == "initialize":
            session = str(uuid.uuid4())
            sessions.add(session)
            headers.append(("mcp-session-id", session))
        elif self.headers.get("mcp-session-id") not in sessions:
            return self.reply(404)
        found = answer(message)
        if found is None:
            return self.reply(202)
        return self.reply(200, json.dumps(found).encode(), headers)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        if "--no-delete" in flags:
            return self.reply(405)
        if "--sessions" not in flags:
            sessions.discard(self.headers.get("mcp-session-id"))
        return self.reply(204)

    def log_message(self, *_):
        pass


if "--http" in sys.argv:
    port = int(sys.argv[sys.argv.index("--http") + 1])
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
for line in sys.stdin:
    found = answer(json.loads(line))
    if found is not None:
        print(json.dumps(found), flush=True)
