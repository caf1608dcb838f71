"""Lists only legacy versions at its discovery. "lies": serves the modern era all the same. "refuses": refuses it, as servers of the Go SDK do."""

import json
import sys

LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
LIES = sys.argv[1] == "lies"


def answer(method, params, version):
    if method == "server/discover":
        info = {"io.modelcontextprotocol/serverInfo": {"name": "hides", "version": "1"}}
        modern = {"resultType": "complete", "_meta": info, "ttlMs": 0, "cacheScope": "public"}
        return {"result": {**modern, "supportedVersions": LEGACY, "capabilities": {"tools": {}}}}
    if version is not None and not LIES:
        data = {"supported": LEGACY, "requested": version}
        return {"error": {"code": -32022, "message": "unsupported version", "data": data}}
    modern = {} if version is None else {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    if method == "initialize":
        wanted = params.get("protocolVersion")
        spoken = wanted if wanted in LEGACY else LEGACY[0]
        return {"result": {"protocolVersion": spoken, "capabilities": {"tools": {}}, "serverInfo": {"name": "hides", "version": "1"}}}
    if method == "ping" and version is None:
        return {"result": {}}
    if method == "tools/list":
        return {"result": {**modern, "tools": [{"name": "now", "inputSchema": {"type": "object"}}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if isinstance(message, dict) and "id" in message and isinstance(message.get("method"), str):
        params = message.get("params") or {}
        version = (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], params, version)}
        print(json.dumps(reply), flush=True)
