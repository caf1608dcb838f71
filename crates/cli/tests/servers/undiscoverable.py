"""A modern server over stdio that refuses discovery. It notes what each of its processes was asked first, and whether it could end by itself."""

import json
import os
import sys

log = sys.argv[1]


def note(what):
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {what}\n")


first = True
for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if not isinstance(message, dict) or "id" not in message:
        continue
    if first:
        note(message.get("method"))
        first = False
    response = {"jsonrpc": "2.0", "id": message["id"]}
    if message.get("method") == "tools/list":
        tool = {"name": "t", "description": "T.", "inputSchema": {"type": "object"}}
        response["result"] = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    else:
        response["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(response), flush=True)
note("ended")
