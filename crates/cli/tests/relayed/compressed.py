"""A server over HTTP that compresses what it sends, whether its client accepts that or not. Prints its port."""

import gzip
import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {"name": "greet", "description": "Greets", "inputSchema": {"type": "object"}}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "compressed", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/token":
            token = {"access_token": "token-of-nobody-0123456789", "token_type": "Bearer"}
            return self.reply(200, "application/json", "gzip", gzip.compress(json.dumps(token).encode(), mtime=0))
        if self.path == "/unknown":
            return self.reply(200, "text/plain", "zstd", b"nobody reads this")
        message = json.loads(body)
        if "id" not in message:
            return self.reply(202, "application/json", "identity", b"")
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] in RESULTS:
            answer["result"] = RESULTS[message["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        text = json.dumps(answer).encode()
        if message["method"] == "tools/call":
            return self.reply(200, "text/event-stream", "deflate", zlib.compress(b"data: " + text + b"\n\n"))
        return self.reply(200, "application/json", "gzip", gzip.compress(text, mtime=0))

    def do_GET(self):
        self.reply(405, "text/plain", "identity", b"")

    def reply(self, status, kind, encoding, body):
        self.send_response_only(status)
        self.send_header("content-type", kind)
        self.send_header("content-encoding", encoding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
