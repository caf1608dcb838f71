"""Server objects of this process, driven through the relay. Knows how SDKs take messages and give them, nothing of what these mean.

A server object is anything that the Python SDK (1 or 2) and FastMCP call a server: a low-level `Server`, or one that wraps it.
The server runs in a task of the caller's event loop, its lifespan included.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
from typing import TYPE_CHECKING, Any, AsyncContextManager, Callable, Dict, Optional

from ._drive import Drive, _encode

if TYPE_CHECKING:
    from types import TracebackType

logger = logging.getLogger("mcproof")
END_SECONDS = 2.0


def is_server_object(target: object) -> bool:
    return _lowlevel_of(target) is not None


def era_of(era: str) -> str:
    """`auto` would make SDK 1 wait for a response to `server/discover`, and it speaks one era only."""
    return "legacy" if era == "auto" and _sdk_generation() < 2 else era


def _lowlevel_of(target: object) -> Any:
    for candidate in (getattr(target, "_mcp_server", None), getattr(target, "_lowlevel_server", None), target):
        if callable(getattr(candidate, "create_initialization_options", None)) and callable(getattr(candidate, "run", None)):
            return candidate
    return None


def _sdk_generation() -> int:
    return int(importlib.metadata.version("mcp").split(".")[0])


class Endpoint:
    """The server's end of one relayed session."""

    def __init__(self, drive: Drive, session: str, server: object) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        self._wrap: Callable[[Any], Any] = SessionMessage
        self._validate, self._validate_text, self._dump = _codec()
        self._drive = drive
        self._session = session
        self._server = server
        self._line_start = '{"jsonrpc":"2.0","method":"relay/received","params":{"session":%s,"message":' % _encode(session)
        self._to_server, self._from_client = anyio.create_memory_object_stream[Any](float("inf"))
        self._closed = False
        self._task: "Optional[asyncio.Task[None]]" = None

    def received(self, params: Dict[str, Any]) -> None:
        """What our client writes to the server, which starts with the first of it."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._serve(), name=f"mcproof relay {self._session}")
        item: Any
        try:
            if "message" in params:
                item = self._wrap(self._validate(params["message"]))
            else:
                item = self._wrap(self._validate_text(_text(params.get("data"))))
        except Exception as error:  # What is no message is given on as the exception, as the SDK's transports do.
            item = error
        with contextlib.suppress(Exception):
            self._to_server.send_nowait(item)

    def end(self) -> None:
        """Our client closed its side: the server has some time to end by itself."""
        self._to_server.close()
        if self._task is None:
            self._hang_up("the server object was not asked for anything")
        elif not self._task.done():
            asyncio.get_running_loop().call_later(END_SECONDS, self._task.cancel)

    async def ended(self) -> None:
        """Ends the server object, and waits until it did."""
        self.end()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=2 * END_SECONDS)

    async def _serve(self) -> None:
        lowlevel = _lowlevel_of(self._server)
        reason = "the server object ended"
        try:
            async with self._lifespan():
                await lowlevel.run(self._from_client, _Writer(self), lowlevel.create_initialization_options())
        except asyncio.CancelledError:
            reason = "the server object was canceled"
            raise
        except BaseException as error:
            logger.exception("the server object under test crashed")
            reason = f"the server object crashed: {_cause(error)}"
        finally:
            self._hang_up(reason)
            self._to_server.close()
            self._from_client.close()

    def _hang_up(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._drive.notify("relay/closed", {"session": self._session, "reason": reason})

    def _lifespan(self) -> AsyncContextManager[Any]:
        manager = getattr(self._server, "_lifespan_manager", None)
        if callable(manager):
            entered: AsyncContextManager[Any] = manager()
            return entered
        return contextlib.nullcontext()

    async def send(self, item: Any) -> None:
        """What the server writes."""
        if self._closed:
            return
        self._drive.send_line(f"{self._line_start}{self._dump(item.message)}}}}}\n")
        if self._drive.congested:
            await self._drive.drained()


class _Writer:
    """The stream that the server writes to: straight into the pipe."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def send(self, item: Any) -> None:
        await self._endpoint.send(item)

    async def aclose(self) -> None:
        return None

    async def __aenter__(self) -> "_Writer":
        return self

    async def __aexit__(
        self, kind: Optional[type], error: Optional[BaseException], traceback: Optional["TracebackType"]
    ) -> None:
        return None


def _codec() -> Any:
    """How the SDK that is installed reads and writes one message."""
    if _sdk_generation() >= 2:
        from mcp.types import jsonrpc_message_adapter as adapter  # type: ignore[import-not-found,unused-ignore]

        def validate(message: Any) -> Any:
            return adapter.validate_python(message, by_name=False)

        def validate_text(text: str) -> Any:
            return adapter.validate_json(text, by_name=False)

        def dump(message: Any) -> str:
            text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
            return text
    else:
        from mcp.types import JSONRPCMessage  # type: ignore[import-not-found,unused-ignore]

        kind: Any = JSONRPCMessage
        validate = kind.model_validate
        validate_text = kind.model_validate_json

        def dump(message: Any) -> str:
            text: str = message.model_dump_json(by_alias=True, exclude_none=True)
            return text

    return validate, validate_text, dump


def _text(data: Any) -> str:
    """`Data`, as a transport of the SDK would decode it."""
    if isinstance(data, dict):
        import base64

        return base64.b64decode(data["base64"]).decode("utf-8", "replace")
    return str(data)


def _cause(error: BaseException) -> str:
    """The first error inside of groups, which say nothing themselves."""
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]  # type: ignore[attr-defined]
    return f"{type(error).__name__}: {error}"
