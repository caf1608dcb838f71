"""One `mcproof drive`: its process, its lines, and who gets which. Knows JSON-RPC's envelope, nothing of MCP.

A drive is read by the event loop that uses it, without a thread. When that loop is closed (pytest-asyncio makes one for every test),
the next loop takes the drive over. Two loops at once have two drives.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import select
import shutil
import subprocess
import threading
import time
from collections import deque
from importlib.metadata import version
from typing import Any, Callable, Deque, Dict, List, Mapping, Optional, Protocol, Union

from ._binary import find_binary
from ._errors import DriveError, from_wire

PROTOCOL = 1
# What a message may wait for while the other side does not read, before senders have to wait too.
CONGESTED = 1 << 20
NOW_SECONDS = 60.0

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class Session(Protocol):
    """Receives the events of one session."""

    def on_message(self, method: str, params: Dict[str, Any]) -> None: ...

    def on_ask(self, ident: str, params: Dict[str, Any]) -> None: ...

    def on_drive_gone(self, error: DriveError) -> None: ...

    def close_at_exit(self) -> None: ...


class _Answer:
    """The response to a request that is waited for without a loop."""

    def __init__(self) -> None:
        self.message: Optional[Dict[str, Any]] = None
        self.lost: Optional[DriveError] = None


_Waiter = Union["asyncio.Future[Any]", _Answer, None]


class Drive:
    def __init__(self, binary: Optional[str] = None) -> None:
        self.binary = binary or find_binary()
        try:
            # A session of its own: Ctrl-C is for pytest, which then closes what it opened.
            self._process = subprocess.Popen(
                [self.binary, "drive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
            )
        except OSError as error:
            raise DriveError(f"cannot start {self.binary}: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self.loop: Optional[asyncio.AbstractEventLoop] = None
        self.sessions: Dict[str, Session] = {}
        self._waiters: Dict[int, _Waiter] = {}
        self._last_id = 0
        self._partial = b""
        self._backlog: Deque[Dict[str, Any]] = deque()
        self._unsent: Deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._drained: Optional["asyncio.Future[None]"] = None
        self._gone: Optional[DriveError] = None
        # Threads without a loop take turns: whoever reads gets the lines of all.
        self._pump = threading.Lock()
        self._hello()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._gone is None

    @property
    def next_id(self) -> int:
        """The id of the request that will be sent next."""
        return self._last_id + 1

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Is read by this loop from now on. What the loop before left behind is closed."""
        # Their loop is closed, so nobody waits for them any more.
        self._waiters = {ident: None for ident in self._waiters}
        left, self.sessions = self.sessions, {}
        self.loop = loop
        self._drained = None
        for session in left:
            self.abandon(session)
        loop.add_reader(self._out, self._on_readable)
        if self._unsent:
            loop.add_writer(self._in, self._on_writable)

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request; canceling the wait cancels the request."""
        assert self.loop is not None
        waiter: asyncio.Future[Any] = self.loop.create_future()
        ident = self._request(method, params, waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if self._waiters.get(ident) is waiter:
                self._waiters[ident] = None
                self.notify("cancel", {"id": ident})
            raise

    def request_now(self, method: str, params: Mapping[str, Any], seconds: float = NOW_SECONDS) -> Any:
        """The result of a request that needs no event loop to go on meanwhile: what arrives for others is kept for later."""
        loop = self.loop
        if loop is not None and loop.is_running() and running_loop() is not loop:
            return asyncio.run_coroutine_threadsafe(self.request(method, params), loop).result(seconds)
        with self._pump:
            return self._pumped(method, params, seconds)

    def kept(self, method: str, session: str) -> Optional[Dict[str, Any]]:
        """The params of a message about a session that came while no event loop was there to take it."""
        for message in list(self._backlog):
            params = message.get("params") or {}
            if message.get("method") == method and params.get("session") == session:
                return params
        return None

    def abandon(self, session: str) -> None:
        """Closes an abandoned session."""
        if self._gone is None:
            self._request("close", {"session": session, "patience": "short"}, None)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.send_line('{"jsonrpc":"2.0","method":"%s","params":%s}\n' % (method, _encode(params)))

    def answer(self, ident: str, result: Any) -> None:
        self.send_line(_encode({"jsonrpc": "2.0", "id": ident, "result": result}) + "\n")

    def refuse(self, ident: str, code: int, message: str) -> None:
        self.send_line(_encode({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}) + "\n")

    def send_line(self, line: str) -> None:
        """Sends a line that is JSON already; what does not fit into the pipe goes later."""
        if self._gone is not None:
            return
        data = line.encode()
        if self._unsent:
            self._keep(memoryview(data))
            return
        try:
            written = os.write(self._in, data)
        except BlockingIOError:
            written = 0
        except OSError:
            # It has ended; reading says so, and why.
            return
        if written < len(data):
            self._keep(memoryview(data)[written:])

    @property
    def congested(self) -> bool:
        return self._unsent_bytes > CONGESTED

    async def drained(self) -> None:
        """Waits until what was kept is out."""
        while self._unsent and self._gone is None:
            assert self.loop is not None
            if self._drained is None:
                self._drained = self.loop.create_future()
            await asyncio.shield(self._drained)

    def end(self, seconds: float = 10.0) -> None:
        """Closes stdin, upon which drive ends everything that it started, and itself."""
        self._lose("it was ended")
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """After a fork: the process belongs to the parent, and its pipes must not be held open from here."""
        self._gone = DriveError("this drive belongs to the process that forked")
        for fd in (self._in, self._out):
            os.close(fd)

    def _hello(self) -> None:
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 160)
        hello = {"protocol": PROTOCOL, "driver": f"mcproof-python {version('mcproof')}", "width": width, "color": False, "unicode": True}
        try:
            self.request_now("hello", hello, 30.0)
        except DriveError as error:
            self.end()
            raise DriveError(f"`{self.binary} drive` cannot be used: {error}") from None
        except Exception as error:
            self.end()
            raise DriveError(f"{self.binary} does not speak version {PROTOCOL} of the drive protocol: {error}") from error

    def _pumped(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        answer = _Answer()
        ident = self._request(method, params, answer)
        deadline = time.monotonic() + seconds
        while answer.message is None:
            if answer.lost is not None:
                raise answer.lost
            left = deadline - time.monotonic()
            if left <= 0:
                self._waiters[ident] = None
                raise DriveError(f"mcproof drive sent no response to `{method}` within {seconds:.0f} s")
            _wait(self._out, self._in if self._unsent else None, left)
            self._flush()
            for message in self._read():
                if message.get("id") == ident and "method" not in message:
                    self._waiters.pop(ident, None)
                    answer.message = message
                else:
                    self._backlog.append(message)
        loop = self.loop
        if self._backlog and loop is not None and loop.is_running():
            loop.call_soon(self._deliver_backlog)
        if "error" in answer.message:
            raise from_wire(answer.message["error"])
        return answer.message.get("result")

    def _request(self, method: str, params: Mapping[str, Any], waiter: _Waiter) -> int:
        if self._gone is not None:
            raise self._gone
        line = _encode(params)
        self._last_id += 1
        ident = self._last_id
        self._waiters[ident] = waiter
        self.send_line('{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}\n' % (ident, method, line))
        return ident

    def _keep(self, data: memoryview) -> None:
        if not self._unsent and self.loop is not None and not self.loop.is_closed():
            self.loop.add_writer(self._in, self._on_writable)
        self._unsent.append(data)
        self._unsent_bytes += len(data)

    def _flush(self) -> None:
        while self._unsent:
            data = self._unsent[0]
            try:
                written = os.write(self._in, data)
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()
                self._unsent_bytes = 0
                break
            self._unsent_bytes -= written
            if written < len(data):
                self._unsent[0] = data[written:]
                return
            self._unsent.popleft()
        if self._drained is not None:
            if not self._drained.done():
                self._drained.set_result(None)
            self._drained = None

    def _on_writable(self) -> None:
        self._flush()
        if not self._unsent and self.loop is not None:
            self.loop.remove_writer(self._in)

    def _on_readable(self) -> None:
        if self._backlog:
            self._deliver_backlog()
        for message in self._read():
            self._deliver(message)

    def _deliver_backlog(self) -> None:
        while self._backlog:
            self._deliver(self._backlog.popleft())

    def _read(self) -> List[Dict[str, Any]]:
        try:
            chunk = os.read(self._out, 1 << 18)
        except BlockingIOError:
            return []
        except OSError as error:
            self._lose(str(error))
            return []
        if not chunk:
            code: Union[int, str]
            try:
                code = self._process.wait(5)
            except subprocess.TimeoutExpired:
                code = "unknown, it still runs"
            self._lose(f"it closed its output; exit code {code}")
            return []
        lines = (self._partial + chunk if self._partial else chunk).split(b"\n")
        self._partial = lines.pop()
        return [json.loads(line) for line in lines if line]

    def _deliver(self, message: Dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            self._settle(message)
            return
        params = message.get("params") or {}
        session = self.sessions.get(params.get("session", ""))
        ident = message.get("id")
        if session is None:
            if ident is not None:
                self.refuse(ident, -32603, "the test that opened this session is over")
        elif ident is not None:
            session.on_ask(ident, params)
        else:
            session.on_message(method, params)

    def _settle(self, message: Dict[str, Any]) -> None:
        ident = message.get("id")
        if ident is None:
            # Only a line of ours that is no JSON is answered so: a bug of this package, and nobody knows whose request it was.
            self._lose(f"it did not understand a line: {message.get('error')}")
            return
        waiter = self._waiters.pop(ident, None)
        if not isinstance(waiter, asyncio.Future) or waiter.done():
            return
        if "error" in message:
            waiter.set_exception(from_wire(message["error"]))
        else:
            waiter.set_result(message.get("result"))

    def _lose(self, why: str) -> None:
        if self._gone is not None:
            return
        error = self._gone = DriveError(f"mcproof drive (pid {self._process.pid}) is gone: {why}")
        loop = self.loop
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self._out)
            if self._unsent:
                loop.remove_writer(self._in)
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters.values():
            if isinstance(waiter, _Answer):
                waiter.lost = error
            elif waiter is not None and not waiter.done() and not waiter.get_loop().is_closed():
                waiter.set_exception(error)
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.on_drive_gone(error)


_drives: List[Drive] = []
_turn = threading.Lock()


def drive_of_this_loop() -> Drive:
    """The drive of the running event loop: started, or taken over from a loop that is closed."""
    loop = asyncio.get_running_loop()
    with _turn:
        _drives[:] = [drive for drive in _drives if drive.alive]
        for drive in _drives:
            if drive.loop is loop:
                return drive
        for drive in _drives:
            if drive.loop is None or drive.loop.is_closed():
                drive.bind(loop)
                return drive
        drive = Drive()
        _drives.append(drive)
        drive.bind(loop)
        return drive


def any_drive() -> Drive:
    """A drive for what needs no session and no event loop."""
    loop = running_loop()
    with _turn:
        _drives[:] = [drive for drive in _drives if drive.alive]
        if loop is None:
            for drive in _drives:
                if drive.loop is None or not drive.loop.is_running():
                    return drive
            drive = Drive()
            _drives.append(drive)
            return drive
    return drive_of_this_loop()


def end_all() -> None:
    """Ends every drive of this process, and with them every server that they started."""
    with _turn:
        drives, _drives[:] = _drives[:], []
    for drive in drives:
        drive.end()


def _end_at_exit() -> None:
    try:
        for drive in list(_drives):
            for session in list(drive.sessions.values()):
                session.close_at_exit()
    finally:
        # Ctrl-C may end the wait for a server; no server outlives it.
        end_all()


def _forget_all() -> None:
    for drive in _drives:
        drive.forget()
    _drives.clear()


def running_loop() -> Optional[asyncio.AbstractEventLoop]:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _wait(readable: int, writable: Optional[int], seconds: float) -> None:
    poll = select.poll()
    poll.register(readable, select.POLLIN)
    if writable is not None:
        poll.register(writable, select.POLLOUT)
    poll.poll(seconds * 1000)


atexit.register(_end_at_exit)
_register_at_fork: Optional[Callable[..., None]] = getattr(os, "register_at_fork", None)
if _register_at_fork is not None:
    _register_at_fork(after_in_child=_forget_all)
