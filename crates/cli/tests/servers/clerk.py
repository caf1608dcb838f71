"""A server as most are: it answers in sentences, with a new number for each order, and asks its user with a form that has defaults."""

import json
import random
import sys

orders = {}
TOOLS = ["order", "look", "ask"]


def send(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def receive():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit()


def form():
    size = {"type": "string", "enum": ["small", "large"], "default": "small"}
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "size": size}, "required": ["name"]}
    send({"id": "form", "method": "elicitation/create", "params": {"message": "Who is it for?", "requestedSchema": schema}})
    while (answer := receive()).get("id") != "form":
        pass
    return json.dumps(answer.get("result"), sort_keys=True)


def call(name, arguments):
    if name == "ask":
        return "The user said " + form()
    if name == "order":
        number = str(random.randrange(10**6, 10**7))
        orders[number] = arguments["item"]
        return f"Created order {number} for {arguments['item']}."
    number = str(arguments["number"]).split(" ")[-1]
    return f"Order {number}: {orders[number]}." if number in orders else None


while True:
    message = receive()
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message or method is None:
        continue
    if method == "initialize":
        about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "clerk", "version": "1"}}
        send({"id": message["id"], "result": about})
    elif method == "tools/list":
        send({"id": message["id"], "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}})
    elif method == "tools/call":
        text = call(params["name"], params.get("arguments", {}))
        content = [{"type": "text", "text": text or "there is no such order"}]
        send({"id": message["id"], "result": {"content": content, "isError": text is None}})
    else:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
