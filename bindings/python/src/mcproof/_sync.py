"""The client for tests that are plain functions. Server objects run in a thread with an event loop, one for the whole process."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Coroutine, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from ._client_responses import Elicitation, Roots, Sampling
from ._client import Client, FilePath, OnProgress
from ._results import (
    Answer,
    CallResult,
    CheckReport,
    ClosedServer,
    Completion,
    Hashes,
    JsonObject,
    Listing,
    Notification,
    Prompt,
    PromptResult,
    RawAnswer,
    ReadResult,
    Resource,
    ResourceTemplate,
    Tool,
    Transcript,
)
from ._targets import Target

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
_turn = threading.Lock()
_loop: Optional[asyncio.AbstractEventLoop] = None


def _portal() -> asyncio.AbstractEventLoop:
    global _loop
    with _turn:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="mcproof", daemon=True).start()
        return _loop


def _run(work: "Coroutine[Any, Any, T]") -> T:
    __tracebackhide__ = True
    waiting = asyncio.run_coroutine_threadsafe(work, _portal())
    try:
        return waiting.result()
    except BaseException:
        waiting.cancel()
        raise


class SyncClient:
    """`with sync_test_client(server) as client:`; everything is as with `Client`, without `await`."""

    def __init__(self, target: Target, **options: Any) -> None:
        self._client = Client(target, **options)

    @property
    def asynchronous(self) -> Client:
        """The client that does the work, in the thread of its own."""
        return self._client

    def __enter__(self) -> "SyncClient":
        __tracebackhide__ = True
        self.open()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        __tracebackhide__ = True
        _run(self._client.__aexit__(kind, error, traceback))

    def open(self) -> JsonObject:
        __tracebackhide__ = True
        return _run(self._client.open())

    def close(self) -> ClosedServer:
        __tracebackhide__ = True
        return _run(self._client.aclose())

    @property
    def session(self) -> str:
        return self._client.session

    @property
    def server_info(self) -> JsonObject:
        return self._client.server_info

    @property
    def capabilities(self) -> JsonObject:
        return self._client.capabilities

    @property
    def instructions(self) -> Optional[str]:
        return self._client.instructions

    @property
    def era(self) -> str:
        return self._client.era

    @property
    def transport(self) -> str:
        return self._client.transport

    @property
    def protocol_version(self) -> str:
        return self._client.protocol_version

    @property
    def url(self) -> Optional[str]:
        return self._client.url

    @property
    def pid(self) -> Optional[int]:
        return self._client.pid

    @property
    def handshake(self) -> Any:
        return self._client.handshake

    @property
    def ended(self) -> Optional[JsonObject]:
        """`reason` and `exit`, if the connection ended unexpectedly. A test that looks at it expects that."""
        return self._client.ended

    @property
    def notifications(self) -> List[Notification]:
        return self._client.notifications

    def call_tool(self, tool: str, /, arguments: Optional[Mapping[str, Any]] = None, **more: Any) -> CallResult:
        """Calls a tool; keywords are its arguments. Raises `ToolError` if it answers with `isError`."""
        __tracebackhide__ = True
        return _run(self._client.call_tool(tool, arguments, **more))

    def call(
        self,
        tool: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        max_time: Optional[float] = None,
        meta: Optional[Mapping[str, Any]] = None,
        progress: Optional[OnProgress] = None,
    ) -> CallResult:
        """Calls a tool; a result with `isError` is a result like others."""
        __tracebackhide__ = True
        return _run(self._client.call(tool, arguments, timeout=timeout, max_time=max_time, meta=meta, progress=progress))

    def list_tools(self, *, timeout: Optional[float] = None) -> Listing[Tool]:
        __tracebackhide__ = True
        return _run(self._client.list_tools(timeout=timeout))

    def list_resources(self, *, timeout: Optional[float] = None) -> Listing[Resource]:
        __tracebackhide__ = True
        return _run(self._client.list_resources(timeout=timeout))

    def list_resource_templates(self, *, timeout: Optional[float] = None) -> Listing[ResourceTemplate]:
        __tracebackhide__ = True
        return _run(self._client.list_resource_templates(timeout=timeout))

    def list_prompts(self, *, timeout: Optional[float] = None) -> Listing[Prompt]:
        __tracebackhide__ = True
        return _run(self._client.list_prompts(timeout=timeout))

    def read_resource(self, uri: str, *, timeout: Optional[float] = None) -> ReadResult:
        __tracebackhide__ = True
        return _run(self._client.read_resource(uri, timeout=timeout))

    def get_prompt(
        self, name: str, arguments: Optional[Mapping[str, str]] = None, *, timeout: Optional[float] = None
    ) -> PromptResult:
        __tracebackhide__ = True
        return _run(self._client.get_prompt(name, arguments, timeout=timeout))

    def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, str],
        *,
        context: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Completion:
        __tracebackhide__ = True
        return _run(self._client.complete(ref, argument, context=context, timeout=timeout))

    def ping(self, *, timeout: Optional[float] = None) -> Answer:
        __tracebackhide__ = True
        return _run(self._client.ping(timeout=timeout))

    def request(
        self,
        method: str,
        params: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        max_time: Optional[float] = None,
        meta: Optional[Mapping[str, Any]] = None,
        progress: Optional[OnProgress] = None,
    ) -> Answer:
        """Any request. Raises `Refused` if the server answers with a JSON-RPC error."""
        __tracebackhide__ = True
        return _run(self._client.request(method, params, timeout=timeout, max_time=max_time, meta=meta, progress=progress))

    def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        __tracebackhide__ = True
        _run(self._client.notify(method, params))

    def raw(
        self, message: Union[Mapping[str, Any], str, bytes], *, wait: Optional[bool] = None, timeout: Optional[float] = None
    ) -> Optional[RawAnswer]:
        __tracebackhide__ = True
        return _run(self._client.raw(message, wait=wait, timeout=timeout))

    def wait_for(self, method: str, *, timeout: Optional[float] = None) -> Notification:
        __tracebackhide__ = True
        return _run(self._client.wait_for(method, timeout=timeout))

    def set_answers(
        self, *, elicitation: Optional[Elicitation] = None, sampling: Optional[Sampling] = None, roots: Optional[Roots] = None
    ) -> None:
        __tracebackhide__ = True
        _run(self._client.set_answers(elicitation=elicitation, sampling=sampling, roots=roots))

    def check(
        self,
        *,
        only: Sequence[str] = (),
        skip: Sequence[str] = (),
        strict: bool = False,
        hosts: bool = False,
        call: Optional[str] = None,
        explore: Optional[bool] = None,
    ) -> CheckReport:
        __tracebackhide__ = True
        return _run(self._client.check(only=only, skip=skip, strict=strict, hosts=hosts, call=call, explore=explore))

    def contract(self) -> JsonObject:
        __tracebackhide__ = True
        return _run(self._client.contract())

    def hash(self) -> Hashes:
        __tracebackhide__ = True
        return _run(self._client.hash())

    def diff(self, lock: FilePath = "mcproof.lock", *, deny: str = "any") -> JsonObject:
        __tracebackhide__ = True
        return _run(self._client.diff(lock, deny=deny))

    def assert_contract(self, lock: FilePath = "mcproof.lock", *, deny: str = "any") -> None:
        __tracebackhide__ = True
        _run(self._client.assert_contract(lock, deny=deny))

    def expect(self, value: Any, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> None:
        __tracebackhide__ = True
        self._client.expect(value, expectation, variables=variables)

    def snapshot(self, value: Any, file: FilePath, *, redact: Sequence[str] = (), update: bool = False) -> None:
        __tracebackhide__ = True
        self._client.snapshot(value, file, redact=redact, update=update)

    def transcript(
        self, *, since: Optional[int] = None, last: Optional[int] = None, frames: bool = True, text: bool = True
    ) -> Transcript:
        __tracebackhide__ = True
        return self._client.transcript(since=since, last=last, frames=frames, text=text)

    def __repr__(self) -> str:
        return repr(self._client).replace("Client", "SyncClient", 1)


def _with_options_of(like: Callable[P, object], make: Callable[..., T]) -> Callable[P, T]:
    return make


# A client of `target` for plain functions, to be used with `with`, or opened by `open()`. The options are those of `Client`.
sync_test_client = _with_options_of(Client, SyncClient)
