"""The smallest correct server with the PyPI package mcp 1. With a port, it serves Streamable HTTP there."""

import sys

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = FastMCP("smallest", host="127.0.0.1", port=port)


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
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


server.run(transport="streamable-http" if port else "stdio")
