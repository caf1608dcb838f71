"""A server over HTTP that several sessions share. The engine starts it, waits until it is ready, and ends its process group."""

from __future__ import annotations

import itertools
import os
import shlex
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Sequence, Type, Union

from ._drive import Drive, any_drive
from ._results import ClosedServer, JsonObject, Transcript

_names = itertools.count(1)


class Server:
    """`with Server("python shop.py --port ${port}", url="http://127.0.0.1:${port}/mcp") as server:` and then `test_client(server)`.

    `${port}` is a free port. With `port_from`, a pattern whose first group is the port in a line that the server prints, it is that.
    """

    def __init__(
        self,
        command: Union[str, Sequence[str]],
        *,
        url: str,
        env: Optional[Mapping[str, str]] = None,
        cwd: "Optional[Union[str, os.PathLike[str]]]" = None,
        port_from: Optional[str] = None,
        connect_timeout: Optional[float] = None,
    ) -> None:
        self.name = f"server-{next(_names)}"
        self._params: JsonObject = {
            "server": self.name,
            "command": shlex.split(command) if isinstance(command, str) else list(command),
            "url": url,
        }
        if env is not None:
            self._params["env"] = dict(env)
        if cwd is not None:
            self._params["cwd"] = os.fspath(cwd)
        if port_from is not None:
            self._params["port_from"] = port_from
        if connect_timeout is not None:
            self._params["timeouts"] = {"connect_ms": connect_timeout * 1000}
        self._drive: Optional[Drive] = None
        self._started: Dict[str, Any] = {}

    def start(self) -> "Server":
        __tracebackhide__ = True
        if self._drive is None:
            drive = any_drive()
            self._started = drive.request_now("spawn", self._params, 600.0)
            self._drive = drive
        return self

    def stop(self) -> ClosedServer:
        __tracebackhide__ = True
        drive, self._drive = self._drive, None
        return ClosedServer({} if drive is None or not drive.alive else drive.request_now("stop", {"server": self.name}))

    @property
    def url(self) -> str:
        return str(self._started["url"])

    @property
    def port(self) -> int:
        return int(self._started["port"])

    @property
    def pid(self) -> int:
        return int(self._started["pid"])

    def transcript(self) -> Transcript:
        """What the server printed."""
        __tracebackhide__ = True
        drive = self._drive or any_drive()
        return Transcript(drive.request_now("transcript", {"server": self.name}))

    def target_for(self, drive: Drive, transport: Optional[str]) -> JsonObject:
        """Another drive knows it by its address only."""
        self.start()
        target = {"spawned": self.name} if drive is self._drive else {"url": self.url}
        return target if transport is None else {**target, "transport": transport}

    def __enter__(self) -> "Server":
        __tracebackhide__ = True
        return self.start()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.stop()

    async def __aenter__(self) -> "Server":
        __tracebackhide__ = True
        return self.start()

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.stop()
