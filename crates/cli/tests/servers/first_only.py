"""A Streamable HTTP server that serves its first request, and refuses all later ones: with a status, or by closing the connection."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

how, port = sys.argv[1], int(sys.argv[2])
first = threading.Semaphore()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = {}
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError:
            pass
        if isinstance(asked, dict) and asked.get("method") == "initialize" and first.acquire(blocking=False):
            info = {"name": "first", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return self.respond(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}))
        if how == "close":
            self.close_connection = True
            return None
        return self.respond(int(how), "out of order")

    do_GET = do_DELETE = do_POST

    def respond(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status == 200 else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
