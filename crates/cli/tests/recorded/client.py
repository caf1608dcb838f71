"""A client of the Python SDK, of either generation: does what a script says and prints what came of each step. Arguments: the script as
JSON, then the command of a server, or `http` or `sse` and a URL."""
import asyncio, contextlib, json, os, sys

import mcp
from mcp import StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

IS_SECOND = hasattr(mcp, "Client")


async def sample(context, params):
    content = types.TextContent(type="text", text="a fixed text")
    return types.CreateMessageResult(role="assistant", model="fixed", content=content)


def filled(field):
    choices = field.get("enum") or [one["const"] for one in field.get("oneOf", [])]
    match field.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return field.get("minimum", 1)
        case "array":
            return []
    formats = {"email": "ann@example.com", "uri": "https://example.com", "date": "2026-01-31"}
    return choices[0] if choices else formats.get(field.get("format"), "Ann Example")


async def elicit(context, params):
    # The user fills in what has to be, and nothing of what the form has a default for.
    form = getattr(params, "requestedSchema", None) or getattr(params, "requested_schema", None) or {}
    content = {name: filled(form["properties"][name]) for name in form.get("required", [])}
    return types.ElicitResult(action="accept", content=content)


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///somewhere", name="somewhere")])


CALLBACKS = {"sampling_callback": sample, "elicitation_callback": elicit, "list_roots_callback": roots}


def transport(server):
    if server[0] == "http":
        return streamable_http_client(server[1])
    if server[0] == "sse":
        return sse_client(server[1])
    return stdio_client(StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ)))


@contextlib.asynccontextmanager
async def connected(server):
    if IS_SECOND:
        async with mcp.Client(transport(server), **CALLBACKS) as client:
            show([client.protocol_version, client.server_info, client.server_capabilities, client.instructions])
            yield client
        return
    async with transport(server) as streams, mcp.ClientSession(streams[0], streams[1], **CALLBACKS) as session:
        show(await session.initialize())
        yield session


def show(value):
    print(json.dumps(value, default=lambda model: model.model_dump(mode="json", exclude_none=True)), flush=True)


async def step(client, action, name, arguments, progress):
    async def report(done, total, *more):
        # What comes together with the response is lost or not, as it happens.
        if done < total:
            progress.append([done, total, *more])

    match action:
        case "tools":
            return await client.list_tools()
        case "call":
            return await client.call_tool(name, arguments, progress_callback=report)
        case "resources":
            return await client.list_resources()
        case "templates":
            return await client.list_resource_templates()
        case "read":
            return await client.read_resource(name)
        case "prompts":
            return await client.list_prompts()
        case "prompt":
            return await client.get_prompt(name, arguments)


async def main():
    async with connected(sys.argv[2:]) as client:
        for action, *rest in json.loads(sys.argv[1]):
            name, arguments = (rest + [None, None])[:2]
            progress = []
            try:
                result = await step(client, action, name, arguments, progress)
                show({action: name, "result": result, "progress": progress})
            except Exception as error:
                told = getattr(error, "error", error)
                show({action: name, "error": [getattr(told, "code", None), getattr(told, "message", None) or str(told)]})


asyncio.run(main())
