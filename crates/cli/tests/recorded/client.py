"""A client of the Python SDK: prints all that a server gives it. Arguments: a tool and its arguments as JSON, then the server's command."""
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    tool, command = json.loads(sys.argv[1]), sys.argv[2:]
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(__import__("os").environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        print(started.model_dump_json(exclude_none=True))
        print((await session.list_tools()).model_dump_json(exclude_none=True))
        if tool:
            result = await session.call_tool(tool["tool"], tool["arguments"])
            print(result.model_dump_json(exclude_none=True))
        if started.capabilities.prompts:
            print((await session.list_prompts()).model_dump_json(exclude_none=True))
        if started.capabilities.resources:
            print((await session.list_resources()).model_dump_json(exclude_none=True))


asyncio.run(main())
