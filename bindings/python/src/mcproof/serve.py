"""`python -m mcproof.serve servers.py:shop [--transport stdio|http|sse] [--port N]` runs a server object in a process of its own.

Knows how the Python SDK's and FastMCP's objects are run, nothing of MCP.
"""

from __future__ import annotations

import argparse
from typing import Any, List, Optional

from ._relay import _lowlevel_of
from ._targets import App


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m mcproof.serve", description="runs a server object over a transport")
    parser.add_argument("place", help="a server, or a function that makes one: servers.py:shop or package.module:server")
    parser.add_argument("args", nargs="*", help="what the function is called with")
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    chosen = parser.parse_args(arguments)
    serve(App(chosen.place, chosen.args).load(), chosen.transport, chosen.host, chosen.port)


def serve(server: Any, transport: str, host: str, port: int) -> None:
    if transport == "stdio":
        _serve_stdio(server)
    else:
        _serve_http(server, transport, host, port)


def _serve_stdio(server: Any) -> None:
    import asyncio

    lowlevel = _lowlevel_of(server)
    if lowlevel is not server:
        # FastMCP says hello on stderr, unless this is set.
        run = server.run_stdio_async
        asyncio.run(run(show_banner=False) if "show_banner" in _parameters(run) else run())
        return

    from mcp.server.stdio import stdio_server

    async def run_lowlevel() -> None:
        async with stdio_server() as (read, write):
            await lowlevel.run(read, write, lowlevel.create_initialization_options())

    asyncio.run(run_lowlevel())


def _serve_http(server: Any, transport: str, host: str, port: int) -> None:
    import uvicorn  # type: ignore[import-not-found,unused-ignore]

    if hasattr(server, "http_app"):
        app = server.http_app(transport=transport, path="/sse" if transport == "sse" else "/mcp")
    elif transport == "sse" and hasattr(server, "sse_app"):
        app = server.sse_app()
    elif hasattr(server, "streamable_http_app") and transport == "http":
        app = server.streamable_http_app()
    else:
        raise SystemExit(f"a {type(server).__name__} cannot be served over {transport} by this package: give a command that serves it")
    uvicorn.run(app, host=host, port=port, log_level="warning")


def _parameters(function: Any) -> List[str]:
    import inspect

    return list(inspect.signature(function).parameters)


if __name__ == "__main__":
    main()
