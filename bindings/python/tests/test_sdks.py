"""The servers of the Python SDK itself, whichever generation is installed, in memory and served by `mcproof.serve`."""

from __future__ import annotations

import importlib
import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from mcproof import App, test_client

HERE = Path(__file__)
GENERATION = int(importlib.metadata.version("mcp").split(".")[0])


def high_level() -> Any:
    """`MCPServer`, which SDK 1 calls FastMCP."""
    module, name = ("mcp.server.mcpserver", "MCPServer") if GENERATION >= 2 else ("mcp.server.fastmcp", "FastMCP")
    server: Any = getattr(importlib.import_module(module), name)("high-level")

    def greet(name: str) -> str:
        return f"Hello, {name}!"

    server.tool()(greet)
    return server


def low_level() -> Any:
    from mcp import types
    from mcp.server.lowlevel import Server

    tool: Any = {"name": "greet", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    kind: Any = Server
    if GENERATION >= 2:

        async def list_tools(context: Any, params: Any) -> Any:
            return types.ListToolsResult.model_validate({"tools": [tool]})

        async def call_tool(context: Any, params: Any) -> Any:
            text = f"Hello, {params.arguments['name']}!"
            return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})

        return kind("low-level", on_list_tools=list_tools, on_call_tool=call_tool)

    server = kind("low-level")

    async def tools() -> Any:
        return [types.Tool.model_validate(tool)]

    async def call(name: str, arguments: Any) -> Any:
        return [types.TextContent(type="text", text=f"Hello, {arguments['name']}!")]

    server.list_tools()(tools)
    server.call_tool()(call)
    return server


@pytest.mark.parametrize("name", ["high_level", "low_level"])
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_server_object_answers_in_memory(name: str, era: str) -> None:
    async with test_client(App(f"{HERE}:{name}"), era=era) as client:
        assert client.transport == "in-memory"
        assert client.era == ("modern" if era == "auto" and GENERATION >= 2 else "legacy")
        assert client.server_info["name"] == name.replace("_", "-")
        assert (await client.list_tools()).names == ["greet"]
        assert (await client.call_tool("greet", name="Ann")).text == "Hello, Ann!"


@pytest.mark.parametrize(
    ("name", "transport"), [("high_level", "stdio"), ("low_level", "stdio"), ("high_level", "http"), ("high_level", "sse")]
)
async def test_a_server_object_is_served_by_another_process(name: str, transport: str) -> None:
    async with test_client(App(f"{HERE}:{name}"), transport=transport) as client:
        assert (await client.call_tool("greet", name="Ann")).text == "Hello, Ann!"
