"""A session with a server, for tests that are coroutines. Every decision about MCP is the engine's."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import os
import sys
from types import TracebackType
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence, Set, Type, TypeVar, Union, cast

from ._client_responses import Elicitation, Roots, Sampling, declare, respond
from ._drive import Drive, any_drive, drive_of_this_loop, running_loop
from ._errors import BadInput, ContractBroken, DriveError, ExpectationFailed, Gone, McproofError, Refused, RequestCanceled, ToolError, Unanswered, WireFault
from ._relay import Endpoint, era_of
from ._results import (
    Answer,
    CallResult,
    CheckReport,
    ClosedServer,
    Completion,
    Hashes,
    Item,
    JsonObject,
    Listing,
    Notification,
    Progress,
    Prompt,
    PromptResult,
    RawAnswer,
    ReadResult,
    Resource,
    ResourceTemplate,
    Tool,
    Transcript,
)
from ._server import Server
from ._targets import Target, resolve

OnProgress = Callable[[Progress], Union[None, Awaitable[None]]]
OnNotification = Callable[[Notification], Union[None, Awaitable[None]]]
OnLog = Callable[[JsonObject], Union[None, Awaitable[None]]]
FilePath = Union[str, "os.PathLike[str]"]
# What a server that is quick to answer needs to say what else it has to say, in milliseconds.
SETTLING_MS = 500
# What succeeds without a response of the server.
SILENT = ("answers", "check", "wait", "notify")
# That a request fails does not say that the server may end.
END_EXPECTED = "a test that expects the end of its server has to look at `client.ended`"
AnswerT = TypeVar("AnswerT", bound=Answer)
ItemT = TypeVar("ItemT", bound=Item)

_names = itertools.count(1)
# Told of every client that opens a session; the pytest plugin listens.
observers: "List[Callable[[Client], None]]" = []


class Client:
    """A session with a server. `async with` opens and closes it; without, the first request opens it.

    `target`            a server object (FastMCP, Python SDK), a command (a list, or a text of several words), a Python file, a URL,
                        the name of a server in mcp.json, an `App`, a `Server`, or a dict of these by transport
    `transport`         memory, stdio, http or sse, where the target leaves a choice
    `era`               auto, legacy or modern; `protocol_version` requests one revision
    `timeout`, `connect_timeout`, `callback_timeout`
                        in seconds: of a request, of the opening, of a response of yours to the server
    `url`, `port_from`  with a command that serves HTTP: where, with `${port}` for a free port; how it prints the port it chose
    `env`, `cwd`        of the command; `headers` of HTTP; `config`, the file of a server's name
    `client_info`, `capabilities`
                        what the server is told about the client
    `elicitation`, `sampling`, `roots`
                        what the server is answered when it asks: a value, a policy, or a function that is given the params;
                        `later_answers` are declared, and refused until `set_answers`
    `on_progress`, `on_notification`, `on_log`
                        functions, plain or coroutines; what they raise is raised when the client is closed
    `secrets`           texts that show in no response, transcript or failure, like the credentials in `env`, `headers` and URLs;
                        with `show_secrets`, answers and notifications are as the server sent them
    `allow_faults`      closing raises no `WireFault` for what no conforming server sends (noise on stdout, a second response),
                        or for a server that ended unasked; the faults are in `transcript().faults` either way
    `skip_rules`        rules that the traffic is not judged by: ids, areas, or globs such as `progress-*`; `*` for all
    """

    # Known as `test_client` too, which pytest must not take for a test.
    __test__ = False

    def __init__(
        self,
        target: Target,
        *,
        transport: Optional[str] = None,
        era: str = "auto",
        protocol_version: Optional[str] = None,
        timeout: Optional[float] = None,
        connect_timeout: Optional[float] = None,
        callback_timeout: Optional[float] = None,
        url: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[FilePath] = None,
        headers: Optional[Mapping[str, str]] = None,
        config: Optional[FilePath] = None,
        port_from: Optional[str] = None,
        client_info: Optional[Mapping[str, str]] = None,
        capabilities: Optional[Mapping[str, Any]] = None,
        elicitation: Optional[Elicitation] = None,
        sampling: Optional[Sampling] = None,
        roots: Optional[Roots] = None,
        later_answers: Optional[Mapping[str, Any]] = None,
        on_progress: Optional[OnProgress] = None,
        on_notification: Optional[OnNotification] = None,
        on_log: Optional[OnLog] = None,
        secrets: Sequence[str] = (),
        show_secrets: bool = False,
        allow_faults: bool = False,
        skip_rules: Sequence[str] = (),
    ) -> None:
        self._shared = target if isinstance(target, Server) else None
        self._transport = transport
        resolved = resolve(
            {"spawned": target.name} if isinstance(target, Server) else target, transport, url=url, env=env, cwd=cwd, headers=headers, config=config, port_from=port_from
        )
        self.session = f"s{next(_names)}"
        self.notifications: List[Notification] = []
        self._server = resolved.server
        self._answers: Dict[str, Any] = {"elicitation": elicitation, "sampling": sampling, "roots": roots}
        self._on_progress, self._on_notification, self._on_log = on_progress, on_notification, on_log
        self._progress_of: Dict[int, OnProgress] = {}
        self._drive: Optional[Drive] = None
        self._relay: Optional[Endpoint] = None
        self._opening: "Optional[asyncio.Task[JsonObject]]" = None
        self._opened: Optional[JsonObject] = None
        self._closed: Optional[ClosedServer] = None
        self._ended: Optional[JsonObject] = None
        self._tasks: "Set[asyncio.Task[Any]]" = set()
        self._callback_error: Optional[BaseException] = None
        self._allows_faults = allow_faults
        # How many faults have been told; whether an end has; whether the last request got no answer; what is new since the last judgment.
        self._faults_told = 0
        self._end_told = False
        self._unanswered = False
        self._talked = False
        identity = dict(client_info or {})
        if capabilities is not None:
            identity["capabilities"] = dict(capabilities)  # type: ignore[assignment]
        self._open_params = _without_none(
            {
                "session": self.session,
                "target": resolved.target,
                "era": era_of(era) if resolved.server is not None else era,
                "protocol_version": protocol_version,
                "timeouts": _without_none(
                    {"connect_ms": _ms(connect_timeout), "request_ms": _ms(timeout), "callback_ms": _ms(callback_timeout)}
                )
                or None,
                "client": identity or None,
                "answers": declare(self._answers) or None,
                "later_answers": declare(later_answers) if later_answers else None,
                "secrets": list(secrets) or None,
                "show_secrets": show_secrets or None,
                "skip_rules": [skip_rules] if isinstance(skip_rules, str) else list(skip_rules) or None,
            }
        )

    # Opening and closing

    async def __aenter__(self) -> "Client":
        __tracebackhide__ = True
        await self.open()
        return self

    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        __tracebackhide__ = True
        try:
            await self.aclose()
        except BaseException:
            # What the test failed with tells more than what closing then fails with.
            if error is None:
                raise

    async def open(self) -> JsonObject:
        """Starts or finds the server and does the handshake; gives what it answered. Again and again it is the same session."""
        __tracebackhide__ = True
        if self._opened is not None:
            return self._opened
        if self._closed is not None:
            raise Gone("this session is closed")
        if self._opening is None:
            for observer in observers:
                observer(self)
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> JsonObject:
        drive = self._drive = drive_of_this_loop()
        drive.sessions[self.session] = self
        if self._shared is not None:
            self._open_params["target"].update(self._shared.target_for(drive, self._transport))
            if "url" in self._open_params["target"]:
                del self._open_params["target"]["spawned"]
        if self._server is not None:
            self._relay = Endpoint(drive, self.session, self._server)
        try:
            opened = cast(JsonObject, await drive.request("open", self._open_params))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError):
                drive.abandon(self.session)
            await self._end_relay()
            drive.sessions.pop(self.session, None)
            raise
        self._opened = opened
        self._talked = True
        return opened

    async def aclose(self) -> ClosedServer:
        """Ends the session in good order, and the server if this client started it; tells how it ended."""
        __tracebackhide__ = True
        if self._closed is not None:
            return self._closed
        if self._opening is not None and self._opened is None:
            self._opening.cancel()
            with contextlib.suppress(BaseException):
                await self._opening
        closed: JsonObject = {}
        drive = self._drive
        fault: Optional[WireFault] = None
        if drive is not None and drive.alive and self.session in drive.sessions:
            try:
                if self._is_to_settle():
                    with contextlib.suppress(McproofError):
                        await drive.request("ping", self._settling())
                closed = await drive.request("close", {"session": self.session})
            except Gone:
                pass
            finally:
                await self._end_relay()
                drive.sessions.pop(self.session, None)
        self._closed = ClosedServer(closed)
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._callback_error is not None:
            raise self._callback_error
        if drive is not None:
            fault = self._judge_faults(drive, self._closed.faults)
        if fault is not None:
            raise fault
        return self._closed

    def close_from_outside(self) -> None:
        """Closes it where no coroutine can: in the teardown of a fixture that is none. Does nothing if it is closed."""
        drive = self._drive
        if self._closed is not None or drive is None or not drive.alive or drive.loop is None:
            return
        loop = drive.loop
        if loop.is_closed():
            # Its tasks are gone with the loop, the server object among them.
            if self._server is not None:
                drive.notify("relay/closed", {"session": self.session, "reason": "the event loop of the test was closed"})
            closed: JsonObject = {}
            with contextlib.suppress(McproofError):
                closed = drive.request_now("close", {"session": self.session, "patience": "short"})
            drive.sessions.pop(self.session, None)
            self._closed = ClosedServer(closed)
            fault = self._judge_faults(drive, self._closed.faults)
            if fault is not None:
                raise fault
        elif loop is running_loop():
            self._track(self.aclose())
        elif loop.is_running():
            asyncio.run_coroutine_threadsafe(self.aclose(), loop).result(60)
        else:
            loop.run_until_complete(self.aclose())

    def close_at_exit(self) -> None:
        """Closes what nobody has closed. There is no test any more that could fail, so that what was wrong on the wire is printed."""
        try:
            self.close_from_outside()
        except WireFault as fault:
            print(f"mcproof: a client was not closed, and no test was told:\n{fault}", file=sys.stderr)
        except Exception as error:
            print(f"mcproof: a client was not closed, and cannot be closed at exit: {error}", file=sys.stderr)

    @property
    def is_left_behind(self) -> bool:
        """Whether its event loop is closed, so that nobody can use it any more."""
        drive = self._drive
        return drive is not None and drive.loop is not None and drive.loop.is_closed()

    def new_fault(self) -> Optional[WireFault]:
        """What is wrong on the wire and has not been told yet; None if nothing is, or if this client allows it. Each is told once."""
        drive = self._drive
        if drive is None or not drive.alive or self._opened is None or self._closed is not None:
            return None
        try:
            if self._is_to_settle():
                with contextlib.suppress(McproofError):
                    drive.request_now("ping", self._settling())
            self._talked = False
            found = drive.request_now("transcript", {"session": self.session, "frames": False, "text": False})
        except McproofError:
            # The session is gone with its event loop, or the drive is.
            return None
        return self._judge_faults(drive, found.get("faults") or [])

    def _is_to_settle(self) -> bool:
        # What a server writes right behind its response comes before its answer to a ping. Where it is silent already, or where the
        # event loop of a server object has to run, nothing is asked.
        opened = self._opened or {}
        return self._talked and not self._allows_faults and not self._unanswered and self._ended is None and opened.get("transport") == "stdio"

    def _settling(self) -> JsonObject:
        self._talked = False
        return {"session": self.session, "timeout_ms": SETTLING_MS}

    def _judge_faults(self, drive: Drive, found: List[JsonObject]) -> Optional[WireFault]:
        new = found[self._faults_told :]
        self._faults_told = max(self._faults_told, len(found))
        # A server at a URL may have been started by a command that ends in good order.
        ended = self._ended or drive.kept("session/ended", self.session) or {}
        ending = ended.get("exit")
        if ending and not self._end_told and ((self._opened or {}).get("transport") == "stdio" or ending.get("code") != 0):
            when = "instead of sending a response" if self._unanswered else "after its last response"
            new = [*new, {"code": "server-exited", "severity": "error", "message": f"{ended['reason']}, {when}", "hint": END_EXPECTED}]
            self._end_told = True
        if self._allows_faults or not new:
            return None
        return WireFault("\n".join(self._shown_fault(drive, fault) for fault in new), new)

    def _shown_fault(self, drive: Drive, fault: JsonObject) -> str:
        frames = [frame["id"] for frame in (fault.get("evidence") or {}).get("frames") or []]
        params: JsonObject = {"session": self.session, "since": frames[0]} if frames else {"session": self.session, "last": 8}
        lines: List[str] = []
        # The fault itself is what matters, where the wire cannot be had any more; a loop that runs here cannot wait for itself.
        with contextlib.suppress(McproofError):
            found = drive.request_now("transcript", params)
            lines = found["text"].splitlines()
            if frames and len(lines) == len(found["frames"]):
                lines = [line for line, frame in zip(lines, found["frames"]) if frame["id"] <= frames[-1]]
        shown = [f"error: {fault['message']}"]
        shown += [f"  {'wire' if place == 0 else '    '}  {line}" for place, line in enumerate(lines)]
        if fault.get("hint"):
            shown.append(f"  hint  {fault['hint']}")
        return "\n".join(shown)

    async def _end_relay(self) -> None:
        if self._relay is not None:
            await self._relay.ended()

    # What the server is

    @property
    def server_info(self) -> JsonObject:
        return cast(JsonObject, self._known().get("server_info") or {})

    @property
    def capabilities(self) -> JsonObject:
        return cast(JsonObject, self._known().get("capabilities") or {})

    @property
    def instructions(self) -> Optional[str]:
        return self._known().get("instructions")

    @property
    def era(self) -> str:
        return cast(str, self._known()["era"])

    @property
    def transport(self) -> str:
        return cast(str, self._known()["transport"])

    @property
    def protocol_version(self) -> str:
        return cast(str, self._known()["protocol_version"])

    @property
    def url(self) -> Optional[str]:
        return self._known().get("url")

    @property
    def pid(self) -> Optional[int]:
        """Of the server, if this client started it."""
        return self._known().get("pid")

    @property
    def handshake(self) -> Any:
        """The whole result of `initialize` or `server/discover`."""
        return self._known().get("result")

    @property
    def ended(self) -> Optional[JsonObject]:
        """`reason` and `exit`, if the connection ended unexpectedly. A test that looks at it expects that."""
        if self._ended is not None:
            self._end_told = True
        return self._ended

    # Asking

    async def call_tool(self, tool: str, /, arguments: Optional[Mapping[str, Any]] = None, **more: Any) -> CallResult:
        """Calls a tool; keywords are its arguments. Raises `ToolError` if it answers with `isError`."""
        __tracebackhide__ = True
        params = {"tool": tool, "arguments": {**(arguments or {}), **more}, "raise_errors": True}
        try:
            return CallResult(self, await self._request("call", params))
        except Refused as error:
            result = error.data.get("result")
            if result is None:
                raise
            raise ToolError(str(error), CallResult(self, _called(result), error_expected=True), error.data) from None

    async def call(
        self,
        tool: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        timeout: Optional[float] = None,
        max_time: Optional[float] = None,
        meta: Optional[Mapping[str, Any]] = None,
        progress: Optional[OnProgress] = None,
    ) -> CallResult:
        """Calls a tool; a result with `isError` is a result like others. Progress extends the timeout, up to `max_time`."""
        __tracebackhide__ = True
        params = {"tool": tool, "arguments": dict(arguments or {})}
        return CallResult(self, await self._request("call", params, timeout, max_time, meta, progress))

    async def list_tools(self, *, timeout: Optional[float] = None) -> Listing[Tool]:
        __tracebackhide__ = True
        return await self._list("tools", Tool, timeout)

    async def list_resources(self, *, timeout: Optional[float] = None) -> Listing[Resource]:
        __tracebackhide__ = True
        return await self._list("resources", Resource, timeout)

    async def list_resource_templates(self, *, timeout: Optional[float] = None) -> Listing[ResourceTemplate]:
        __tracebackhide__ = True
        return await self._list("templates", ResourceTemplate, timeout)

    async def list_prompts(self, *, timeout: Optional[float] = None) -> Listing[Prompt]:
        __tracebackhide__ = True
        return await self._list("prompts", Prompt, timeout)

    async def read_resource(self, uri: str, *, timeout: Optional[float] = None) -> ReadResult:
        __tracebackhide__ = True
        return ReadResult(self, await self._request("read", {"uri": uri}, timeout))

    async def get_prompt(
        self, name: str, arguments: Optional[Mapping[str, str]] = None, *, timeout: Optional[float] = None
    ) -> PromptResult:
        __tracebackhide__ = True
        return PromptResult(self, await self._request("prompt", {"name": name, "arguments": dict(arguments or {})}, timeout))

    async def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, str],
        *,
        context: Optional[Mapping[str, Any]] = None,
        timeout: Optional[float] = None,
    ) -> Completion:
        """Proposals for an argument `{"name": …, "value": …}` of a prompt or of a resource template."""
        __tracebackhide__ = True
        params = _without_none({"ref": dict(ref), "argument": dict(argument), "context": context})
        return Completion(self, await self._request("complete", params, timeout))

    async def ping(self, *, timeout: Optional[float] = None) -> Answer:
        __tracebackhide__ = True
        return Answer(self, await self._request("ping", {}, timeout))

    async def request(
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
        fields = _without_none({"method": method, "params": params})
        return Answer(self, await self._request("request", fields, timeout, max_time, meta, progress))

    async def notify(self, method: str, params: Optional[Mapping[str, Any]] = None) -> None:
        __tracebackhide__ = True
        await self._request("notify", _without_none({"method": method, "params": params}))

    async def raw(
        self, message: Union[Mapping[str, Any], str, bytes], *, wait: Optional[bool] = None, timeout: Optional[float] = None
    ) -> Optional[RawAnswer]:
        """Sends a message as it stands, right or wrong, or bytes. The response, if one is waited for, may hold the server's `error`."""
        __tracebackhide__ = True
        params = _without_none({"wait": wait})
        if isinstance(message, bytes):
            params["bytes"] = _data(message)
        elif isinstance(message, str):
            params["bytes"] = message
        else:
            params["message"] = dict(message)
        said = await self._request("raw", params, timeout)
        return RawAnswer(self, said) if said else None

    async def wait_for(self, method: str, *, timeout: Optional[float] = None) -> Notification:
        """The next notification of that method. Each is given once, and one that came before is not missed."""
        __tracebackhide__ = True
        return Notification(await self._request("wait", {"method": method}, timeout))

    async def set_answers(
        self, *, elicitation: Optional[Elicitation] = None, sampling: Optional[Sampling] = None, roots: Optional[Roots] = None
    ) -> None:
        """Changes what the server is answered from now on; what was not named at the opening is not declared to a legacy server."""
        __tracebackhide__ = True
        given = _without_none({"elicitation": elicitation, "sampling": sampling, "roots": roots})
        self._answers.update(given)
        await self._request("answers", {"answers": declare(self._answers)})

    # Judging

    async def check(
        self,
        *,
        only: Sequence[str] = (),
        skip: Sequence[str] = (),
        strict: bool = False,
        hosts: bool = False,
        call: Optional[str] = None,
        explore: Optional[bool] = None,
    ) -> CheckReport:
        """Holds the server against the rules of the protocol.

        A server of a process or a URL is explored in sessions of their own, as `mcproof check` does. For a server object, or with
        `explore=False`, what was on this session's wire so far is judged. `hosts` also judges what desktop hosts reject, and starts the
        server once more as they do.
        """
        __tracebackhide__ = True
        params: JsonObject = _without_none({"only": list(only) or None, "skip": list(skip) or None, "call": call})
        if strict:
            params["strict"] = True
        if hosts:
            params["hosts"] = True
        if self._server is None and explore is not False:
            params["target"] = self._open_params["target"]
            return CheckReport(await (await self._ready()).request("check", params))
        if explore:
            raise BadInput("a server object in memory cannot be explored: pass its `App`, over stdio")
        return CheckReport(await self._request("check", params))

    async def contract(self) -> JsonObject:
        """What the server promises to this session's kind of client."""
        __tracebackhide__ = True
        return cast(JsonObject, await self._request("contract", {}))

    async def hash(self) -> Hashes:
        """The hashes of the contract: `tools` and `full`."""
        __tracebackhide__ = True
        return cast(Hashes, await self._request("hash", {}))

    async def diff(self, lock: FilePath = "mcproof.lock", *, deny: str = "any") -> JsonObject:
        """How the contract differs from the one in a lock file: `ok`, `diff` and `text`."""
        __tracebackhide__ = True
        return cast(JsonObject, await self._request("diff", {"lock": os.path.abspath(lock), "deny": deny}))

    async def assert_contract(self, lock: FilePath = "mcproof.lock", *, deny: str = "any") -> None:
        """Raises `ContractBroken` if the contract differs from the lock file; with `deny="breaking"`, only if that breaks clients."""
        __tracebackhide__ = True
        found = await self.diff(lock, deny=deny)
        if not found["ok"]:
            raise ContractBroken(found.get("text") or "the contract differs from the lock file", found.get("diff"))

    def expect(self, value: Any, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> None:
        """Holds any value against an expectation in the language of the suites; raises `ExpectationFailed` with a diff and the wire."""
        __tracebackhide__ = True
        self._expect({"value": value}, expectation, variables, None)

    def snapshot(self, value: Any, file: FilePath, *, redact: Sequence[str] = (), update: bool = False) -> None:
        """Holds a value against a reviewed file; raises `ExpectationFailed` if it differs, or is new. With `update` it is written."""
        __tracebackhide__ = True
        snapshot(value, file, redact=redact, update=update)

    def transcript(
        self, *, since: Optional[int] = None, last: Optional[int] = None, frames: bool = True, text: bool = True
    ) -> Transcript:
        """What was on the wire so far, also when the session is closed."""
        __tracebackhide__ = True
        params = {"session": self.session, "frames": frames, "text": text, "since": since, "last": last}
        return Transcript(self._of_drive().request_now("transcript", _without_none(params)))

    def _expect(
        self, what: Mapping[str, Any], expectation: Any, variables: Optional[Mapping[str, Any]], frame: Optional[int]
    ) -> None:
        __tracebackhide__ = True
        params = {**what, "expectation": expectation, "vars": variables, "session": self.session, "frame": frame}
        params = {key: value for key, value in params.items() if value is not None or key in ("value", "result", "expectation")}
        _judge(self._of_drive(), params)

    # The drive's side

    def on_message(self, method: str, params: JsonObject) -> None:
        if method == "relay/write":
            if self._relay is not None:
                self._relay.received(params)
        elif method == "relay/end":
            if self._relay is not None:
                self._relay.end()
        elif method == "session/notification":
            notification = Notification({key: value for key, value in params.items() if key != "session"})
            self.notifications.append(notification)
            if self._on_notification is not None:
                self._call_back(self._on_notification, notification)
            if self._on_log is not None and notification.method == "notifications/message":
                self._call_back(self._on_log, notification.params)
        elif method == "session/progress":
            callback = self._progress_of.get(params.get("id", 0)) or self._on_progress
            if callback is not None:
                self._call_back(callback, Progress(params))
        elif method == "session/ended":
            self._ended = params

    def on_ask(self, ident: str, params: JsonObject) -> None:
        self._track(self._answer(ident, params))

    def on_drive_gone(self, error: DriveError) -> None:
        self._ended = {"reason": str(error)}

    async def _answer(self, ident: str, params: JsonObject) -> None:
        drive = self._of_drive()
        try:
            result = await respond(self._answers, params["method"], params.get("params") or {})
            drive.answer(ident, result)
        except Exception as error:
            self._callback_error = self._callback_error or error
            drive.refuse(ident, -32603, f"the test's answer failed: {type(error).__name__}: {error}")

    def _call_back(self, callback: Callable[[Any], Any], value: Any) -> None:
        try:
            said = callback(value)
        except BaseException as error:
            self._callback_error = self._callback_error or error
            return
        if inspect.isawaitable(said):
            self._track(_finish(said))

    def _track(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._callback_error = self._callback_error or task.exception()

    # Shared by the above

    async def _ready(self) -> Drive:
        __tracebackhide__ = True
        if self._opened is None:
            await self.open()
        return self._of_drive()

    async def _request(
        self,
        method: str,
        params: JsonObject,
        timeout: Optional[float] = None,
        max_time: Optional[float] = None,
        meta: Optional[Mapping[str, Any]] = None,
        progress: Optional[OnProgress] = None,
    ) -> Any:
        __tracebackhide__ = True
        drive = self._drive if self._opened is not None else await self._ready()
        assert drive is not None
        if self._closed is not None:
            raise Gone("this session is closed")
        params["session"] = self.session
        if timeout is not None:
            params["timeout_ms"] = _ms(timeout)
        if max_time is not None:
            params["max_ms"] = _ms(max_time)
        if meta is not None:
            params["meta"] = dict(meta)
        if progress is None and self._on_progress is None:
            return await self._sent(drive, method, params)
        if progress is None:
            if method not in ("call", "request"):
                return await self._sent(drive, method, params)
            progress = self._on_progress
            assert progress is not None
        params["progress"] = True
        ident = drive.next_id
        self._progress_of[ident] = progress
        try:
            return await self._sent(drive, method, params)
        finally:
            self._progress_of.pop(ident, None)

    async def _sent(self, drive: Drive, method: str, params: JsonObject) -> Any:
        __tracebackhide__ = True
        self._talked = True
        try:
            answer = await drive.request(method, params)
        except (Unanswered, RequestCanceled, asyncio.CancelledError):
            # The server is not asked what else it has to say.
            self._unanswered = self._unanswered or method != "wait"
            raise
        if method not in SILENT:
            self._unanswered = False
        return answer

    async def _list(self, what: str, kind: Callable[[JsonObject], ItemT], timeout: Optional[float]) -> Listing[ItemT]:
        __tracebackhide__ = True
        found = await self._request("list", {"what": what}, timeout)
        return Listing(what, [kind(item) for item in found["items"]], found.get("pages", 1), found.get("elapsed_ms", 0.0) / 1000)

    def _known(self) -> JsonObject:
        if self._opened is None:
            raise Gone("this session is not open yet: use `async with`, or await `open()` first")
        return self._opened

    def _of_drive(self) -> Drive:
        if self._drive is None:
            raise Gone("this session was never opened")
        return self._drive

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._opened else "not open"
        return f"<mcproof.Client {self.session}, {state}>"


test_client = Client


def expect(value: Any, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> None:
    """Holds any value against an expectation in the language of the suites; raises `ExpectationFailed` with a diff."""
    __tracebackhide__ = True
    params = {"value": value, "expectation": expectation}
    if variables is not None:
        params["vars"] = dict(variables)
    _judge(any_drive(), params)


def snapshot(value: Any, file: FilePath, *, redact: Sequence[str] = (), update: bool = False) -> None:
    """Holds a value against a reviewed file; raises `ExpectationFailed` if it differs, or is new. With `update` it is written."""
    __tracebackhide__ = True
    params: JsonObject = {"file": os.path.abspath(file), "value": value, "update": update}
    if redact:
        params["redact"] = list(redact)
    found = any_drive().request_now("snapshot", params)
    if found["state"] not in ("same", "written"):
        text = found.get("text") or f"there is no snapshot {file} yet: what came is in {file}.new; review it and rename it"
        raise ExpectationFailed(text, None, found.get("diagnostic"))


def _judge(drive: Drive, params: JsonObject) -> None:
    __tracebackhide__ = True
    found = drive.request_now("expect", params)
    if not found["ok"]:
        raise ExpectationFailed(found["text"], found.get("differences"), found.get("diagnostic"))


def _called(result: JsonObject) -> JsonObject:
    """The result of a call that came as an error, as `call` gives it."""
    texts = [block["text"] for block in result.get("content") or [] if isinstance(block, dict) and "text" in block]
    text = "\n".join(texts) if texts else None
    return {"result": result, "is_error": True, "text": text, "payload": result.get("structuredContent", text)}


def _ms(seconds: Optional[float]) -> Optional[float]:
    return None if seconds is None else seconds * 1000


def _data(raw: bytes) -> Any:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(raw).decode()}


def _without_none(params: Mapping[str, Any]) -> JsonObject:
    return {key: value for key, value in params.items() if value is not None}


async def _finish(work: Awaitable[None]) -> None:
    await work
