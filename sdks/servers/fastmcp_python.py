"""The smallest correct server with the PyPI package fastmcp. With a port, it serves Streamable HTTP there."""

import sys

from fastmcp import FastMCP

port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = FastMCP("smallest")


@server.tool(annotations={"readOnlyHint": True})
def echo(message: str) -> str:
    """Gives back the message it was called with."""
    return message


@server.resource("smallest://greeting", mime_type="text/plain")
def greeting() -> str:
    """A greeting."""
    return "Hello"


@server.prompt
def greet(name: str) -> str:
    """Asks for a greeting."""
    return f"Greet {name}."


if port:
    server.run(transport="http", host="127.0.0.1", port=port)
else:
    server.run()
