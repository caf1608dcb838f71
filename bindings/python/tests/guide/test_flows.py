"""The guide's basic, pipeline, concurrent, session and federation tests; their servers come from a fixture."""

from __future__ import annotations

import asyncio

import pytest

from mcproof import create_federation_client

from .conftest import Serve


@pytest.mark.asyncio
async def test_tool_execution(serve: Serve) -> None:
    server = serve("calculator")
    async with server.test_client() as client:
        tools = await client.list_tools()
        assert len(tools.tools) == 1
        assert tools.tools[0].name == "calculate"

        result = await client.call_tool("calculate", a=5, b=3)
        assert result.content[0].text == "Result: 8"


@pytest.mark.asyncio
async def test_data_pipeline(serve: Serve) -> None:
    server = serve("pipeline")
    async with server.test_client() as client:
        fetch_result = await client.call_tool("fetch_data", source="database")
        data_id = fetch_result.content[0].text

        process_result = await client.call_tool("process", data_id=data_id, operation="transform")

        validate_result = await client.call_tool("validate", process_id=process_result.meta["process_id"])
        assert validate_result.meta["status"] == "success"
        assert validate_result.meta["context_preserved"] == True  # noqa: E712


@pytest.mark.asyncio
async def test_concurrent_operations(serve: Serve) -> None:
    server = serve("slow")
    async with server.test_client() as client:
        tasks = [client.call_tool("long_operation", id=i) for i in range(10)]
        results = await asyncio.gather(*tasks)

        assert len(results) == 10
        assert all(r.content[0].text.startswith("Complete") for r in results)
        # Beyond the guide: each call got its own response.
        assert [r.content[0].text for r in results] == [f"Complete: {i}" for i in range(10)]

        ids = [r.meta["operation_id"] for r in results]
        assert len(set(ids)) == 10


@pytest.mark.asyncio
async def test_session_persistence(serve: Serve) -> None:
    server = serve("remembering")
    async with server.test_client() as client:
        await client.call_tool("set_context", key="user_id", value="123")

        result = await client.call_tool("get_context", key="user_id")
        assert result.content[0].text == "123"


@pytest.mark.asyncio
async def test_distributed_tools(serve: Serve) -> None:
    servers = [serve("numbered", f"server-{i}") for i in range(3)]

    async with create_federation_client(servers) as client:
        tools = await client.list_tools()

        tool_names = [t.name for t in tools.tools]
        assert "server-0-tool" in tool_names
        assert "server-1-tool" in tool_names
        assert "server-2-tool" in tool_names

        # Beyond the guide: a call goes to the server that has the tool.
        result = await client.call_tool("server-1-tool")
        assert result.text == "this is server-1"
