"""The six end-to-end tests of examples/e2e.mcproof.yaml as one would write them with pytest and the Python SDK,
repeated, each on a fresh server over stdio."""

import os

import pytest
from mcp import Client, MCPError, StdioServerParameters

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("round_number", range(int(os.environ["REPEAT"]))),
]


@pytest.fixture
def anyio_backend():
    return "asyncio"


def connect():
    return Client(StdioServerParameters(command=os.environ["MCPROOF"], args=["demo", "tracker"]))


async def fails(client, name, arguments):
    try:
        return (await client.call_tool(name, arguments)).is_error
    except MCPError:
        return True


async def test_the_handshake_is_complete(round_number):
    async with connect() as client:
        assert client.server_info.name
        assert client.server_capabilities.tools is not None


async def test_the_list_of_tools_is_not_empty(round_number):
    async with connect() as client:
        assert (await client.list_tools()).tools


async def test_each_tool_has_its_required_fields(round_number):
    async with connect() as client:
        for tool in (await client.list_tools()).tools:
            assert tool.name
            assert isinstance(tool.description, str)
            assert tool.input_schema["type"] == "object"


async def test_a_call_gives_text(round_number):
    async with connect() as client:
        result = await client.call_tool("echo", {"message": "hello from e2e"})
        assert result.content[0].type == "text"
        assert "hello from e2e" in result.content[0].text


async def test_a_missing_argument_is_refused(round_number):
    async with connect() as client:
        assert await fails(client, "echo", {})


async def test_an_unknown_tool_fails(round_number):
    async with connect() as client:
        assert await fails(client, "nonexistent_tool_xyz", {})
