"""Several servers behind one client: what they list is one list, and a call goes to the server that has the tool."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from ._client import Client, test_client
from ._errors import BadInput
from ._results import CallResult, Listing, Tool
from ._targets import Target


class FederationClient:
    """Made by `create_federation_client`. `clients` are the clients of the servers, by name (or by place, from 0)."""

    def __init__(self, servers: Union[Sequence[Target], Mapping[str, Target]], **options: Any) -> None:
        named = servers if isinstance(servers, Mapping) else {str(place): server for place, server in enumerate(servers)}
        self.clients: Dict[str, Client] = {name: test_client(server, **options) for name, server in named.items()}
        self._owners: Optional[Dict[str, List[str]]] = None
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "FederationClient":
        __tracebackhide__ = True
        async with self._stack as stack:
            for client in self.clients.values():
                stack.push_async_exit(client.__aexit__)
            await asyncio.gather(*(client.open() for client in self.clients.values()))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        __tracebackhide__ = True
        await self._stack.__aexit__(kind, error, traceback)

    def __getitem__(self, name: Union[str, int]) -> Client:
        return self.clients[str(name)]

    def __iter__(self) -> Iterator[Client]:
        return iter(self.clients.values())

    async def list_tools(self) -> Listing[Tool]:
        """The tools of all servers, in the order of the servers."""
        __tracebackhide__ = True
        lists = await asyncio.gather(*(client.list_tools() for client in self.clients.values()))
        self._owners = {}
        for name, tools in zip(self.clients, lists):
            for tool in tools:
                self._owners.setdefault(tool.name, []).append(name)
        items = [tool for tools in lists for tool in tools]
        return Listing("tools", items, sum(tools.pages for tools in lists), max((tools.elapsed for tools in lists), default=0.0))

    async def call_tool(self, tool: str, /, arguments: Optional[Mapping[str, Any]] = None, **more: Any) -> CallResult:
        """Calls a tool of whichever server has it; a name that several servers use has to be called at `client[server]`."""
        __tracebackhide__ = True
        return await (await self._owner(tool)).call_tool(tool, arguments, **more)

    async def call(self, tool: str, arguments: Optional[Mapping[str, Any]] = None, **options: Any) -> CallResult:
        """As `Client.call`, at whichever server has the tool."""
        __tracebackhide__ = True
        return await (await self._owner(tool)).call(tool, arguments, **options)

    async def _owner(self, tool: str) -> Client:
        __tracebackhide__ = True
        if self._owners is None:
            await self.list_tools()
        owners = (self._owners or {}).get(tool, [])
        if len(owners) == 1:
            return self.clients[owners[0]]
        if owners:
            raise BadInput(f"the tool `{tool}` is there on the servers {', '.join(owners)}: call it at `client[{owners[0]!r}]`")
        raise BadInput(f"no server of this federation has a tool `{tool}`; there are {', '.join(self._owners or {}) or 'none'}")


def create_federation_client(servers: Union[Sequence[Target], Mapping[str, Target]], **options: Any) -> FederationClient:
    """One client of several servers; the options are those of `test_client`, for each of them."""
    return FederationClient(servers, **options)
