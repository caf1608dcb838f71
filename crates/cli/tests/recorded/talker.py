"""A client that calls a tool until it is ended: over the pipes of the command in its arguments, or at the URL."""
import json, subprocess, sys, urllib.request

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "talker", "version": "1"},
}
CALL = {"name": "check_inventory", "arguments": {"product_id": "PROD-123"}}


def message(number, method, params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def over_pipes(command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(number, method, params):
        server.stdin.write(message(number, method, params) + b"\n")
        server.stdin.flush()
        return server.stdout.readline()

    ask(0, "initialize", INITIALIZE)
    server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    number = 1
    while ask(number, "tools/call", CALL):
        number += 1


def over_http(url):
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def ask(body):
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            response.read()
            return response.headers

    session = ask(message(0, "initialize", INITIALIZE)).get("mcp-session-id")
    headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-06-18"} if session else {}
    number = 1
    while True:
        ask(message(number, "tools/call", CALL))
        number += 1


if sys.argv[1].startswith("http://"):
    over_http(sys.argv[1])
else:
    over_pipes(sys.argv[1:])
