"""A stdio server of which one process runs at a time: another one finds its database locked, and ends.

usage: alone.py LOCK [--contended]   with --contended, no tool answers before another process has found the lock taken
"""

import fcntl
import json
import os
import sys
import time

lock = open(sys.argv[1], "w")
refused = sys.argv[1] + ".refused"
contended = "--contended" in sys.argv[2:]
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(refused, "w").close()
    sys.exit("Error: the database is locked by another process")

REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
TOOL = {
    "name": "count",
    "description": "Counts the rows of the database.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": {"readOnlyHint": True},
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def answer(method, params):
    if method == "initialize":
        asked = params["protocolVersion"]
        return {
            "protocolVersion": asked if asked in REVISIONS else REVISIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "alone", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list" and "cursor" not in params:
        return {"tools": [TOOL]}
    if method == "tools/call" and params.get("name") == "count":
        while contended and not os.path.exists(refused):
            time.sleep(0.01)
        return {"content": [{"type": "text", "text": "3"}]}
    if method in ("tools/list", "tools/call"):
        raise ValueError(-32602, "no such tool or page")
    raise ValueError(-32601, "no such method")


for line in sys.stdin.buffer:
    if not line.strip():
        continue
    try:
        message = json.loads(line)
    except ValueError:
        send({"id": None, "error": {"code": -32700, "message": "no JSON"}})
        continue
    if not isinstance(message, dict):
        send({"id": None, "error": {"code": -32600, "message": "no request"}})
        continue
    if "id" not in message or "method" not in message:
        continue
    try:
        send({"id": message["id"], "result": answer(message["method"], message.get("params") or {})})
    except ValueError as refusal:
        code, text = refusal.args
        send({"id": message["id"], "error": {"code": code, "message": text}})
