"""The smallest correct server with the PyPI package mcp 2. With a port, it serves Streamable HTTP there."""

import sys

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = MCPServer("smallest")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(message: str) -> str:
    """Gives back the message it was called with."""
    return message


@server.resource("smallest://greeting", mime_type="text/plain")
def greeting() -> str:
    """A greeting."""
    return "Hello"


@server.prompt()
def greet(name: str) -> str:
    """Asks for a greeting."""
    return f"Greet {name}."


if port:
    server.run(transport="streamable-http", host="127.0.0.1", port=port)
else:
    server.run()
