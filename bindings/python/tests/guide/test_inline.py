"""The guide's quick answer and its first example, with one line changed: where FastMCP is imported from."""

from __future__ import annotations

import pytest

from mcproof.fastmcp import FastMCP


@pytest.mark.asyncio
async def test_tool_execution() -> None:
    server = FastMCP("test-server", connection_timeout=5.0, invocation_timeout=10.0)

    @server.tool()
    async def calculate(a: int, b: int) -> str:
        return f"Result: {a + b}"

    async with server.test_client() as client:
        tools = await client.list_tools()
        assert len(tools.tools) == 1
        assert tools.tools[0].name == "calculate"

        result = await client.call_tool("calculate", a=5, b=3)
        assert result.content[0].text == "Result: 8"


@pytest.mark.asyncio
async def test_workflow() -> None:
    server = FastMCP("search")

    @server.tool()
    async def search(query: str) -> str:
        return f"found {query}"

    async with server.test_client() as client:
        result = await client.call_tool("search", query="test")
        assert result.content[0].text
