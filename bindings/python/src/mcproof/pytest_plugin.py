"""The pytest plugin: fixtures, the marker `mcp`, the wire in reports, snapshots. Works under pytest-asyncio, anyio, xdist, or without.

Knows pytest; what is on the wire and what a value is held against is the engine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import re
from pathlib import Path
from typing import Any, Callable, Dict, Generator, Iterator, List, NoReturn, Optional, Sequence, Union

import pytest

from . import _client, _forgotten
from ._client import Client
from ._drive import end_all
from ._errors import McproofError, WireFault
from ._federation import FederationClient
from ._sync import SyncClient

FRAMES_OF_A_FAILURE = 40
MARKER = """\
mcp(transports=["memory", "stdio", "http", "sse"], server=…, **options): runs a test that uses `mcp_client` once for each transport; \
`server` is what `mcp_server` is otherwise, and the options are those of `mcproof.test_client`; with `allow_faults=True`, faults on the \
wire do not fail the test, whichever client it uses"""

_opened = pytest.StashKey[List[Client]]()
_current: List[pytest.Item] = []
# Those that may be open: a fixture may share one among tests.
_clients: List[Client] = []
# More than one where a test runs pytest inside of itself.
_configs: List[pytest.Config] = []
TITLE = "MCP wire"
FAULTS = "MCP faults"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcproof", "MCP servers under test (mcproof)")
    group.addoption("--mcp-trace", action="store_true", help="show the wire of every test, not only of those that fail")
    group.addoption("--mcp-update-snapshots", action="store_true", help="write what came as the new snapshots of `mcp_snapshot`")
    parser.addini("mcp_server", "the server of `mcp_client`, where no fixture or marker names one: a command, a URL, file.py:server")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    _configs.append(config)
    if _remember not in _client.observers:
        _client.observers.append(_remember)
    _forgotten.follow(Client, FederationClient)


def pytest_unconfigure(config: pytest.Config) -> None:
    if config in _configs:
        _configs.remove(config)
    if not _configs:
        _forgotten.unfollow()
        end_all()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("mcp")
    transports = marker.kwargs.get("transports") if marker else None
    if isinstance(transports, str):
        pytest.fail(f"`transports` of the marker `mcp` is a list: write transports=[{transports!r}]", pytrace=False)
    if transports and "mcp_transport" in metafunc.fixturenames:
        metafunc.parametrize("mcp_transport", list(transports), indirect=True)


@pytest.fixture
def mcp_transport(request: pytest.FixtureRequest) -> Optional[str]:
    """The transport of this run of the test, as the marker `mcp` says; None where it says nothing."""
    transport: Optional[str] = getattr(request, "param", None)
    return transport


@pytest.fixture
def mcp_server(request: pytest.FixtureRequest) -> Any:
    """The server of `mcp_client`. Override it with anything that `mcproof.test_client` takes, or with one of these by transport."""
    marker = request.node.get_closest_marker("mcp")
    if marker is not None and "server" in marker.kwargs:
        return marker.kwargs["server"]
    configured = request.config.getini("mcp_server")
    if configured:
        return configured
    raise pytest.UsageError('no server to test: write a fixture `mcp_server`, `@pytest.mark.mcp(server=…)` or `mcp_server = …` in the ini file')


@pytest.fixture
def mcp_client(
    request: pytest.FixtureRequest, mcp_server: Any, mcp_transport: Optional[str]
) -> Iterator[Union[Client, SyncClient]]:
    """A client of `mcp_server`: a `Client` for a test that is a coroutine, a `SyncClient` for others.

    Its server runs when the test begins. In a coroutine it is opened in the event loop of the test, where server objects have to run.
    """
    marker = request.node.get_closest_marker("mcp")
    options: Dict[str, Any] = {"transport": mcp_transport}
    if marker is not None:
        options.update({key: value for key, value in marker.kwargs.items() if key not in ("transports", "server")})
    if inspect.iscoroutinefunction(inspect.unwrap(request.function)):
        client = Client(mcp_server, **options)
        test, request.node.obj = request.node.obj, _opening(request.node.obj, client)
        yield client
        request.node.obj = test
        client.close_from_outside()
    else:
        with SyncClient(mcp_server, **options) as sync_client:
            yield sync_client


def _opening(test: Callable[..., Any], client: Client) -> Callable[..., Any]:
    """The test, which begins with the opening, whatever runs it: a server that does not start fails a test that sends nothing, too."""
    if not inspect.iscoroutinefunction(test):
        return test

    @functools.wraps(test)
    async def opened(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        await client.open()
        return await test(*arguments, **named)

    return opened


# Ids whose names of files are their own: classes, a function, and parameters that a file name can hold. The first capital tells what is what.
_OWN_NAME = re.compile(r"(?:[A-Z]\w*::)*[^\W\dA-Z]\w*(?:\[(?!-)[\w.-]+(?<!-)\])?")


def _name_of_snapshot(qualified: str) -> str:
    """No two ids have the same name: what the readable form of an id loses is in a hash behind it."""
    name = re.sub(r"[^\w.-]+", "-", qualified).strip("-")
    if _OWN_NAME.fullmatch(qualified):
        return name
    return f"{name}~{hashlib.sha256(qualified.encode(errors='surrogatepass')).hexdigest()[:8]}"


class Snapshots:
    """Holds values against reviewed files beside the test, in `__snapshots__`."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        path = Path(str(request.node.path))
        self._folder = path.parent / "__snapshots__" / path.stem
        qualified = request.node.nodeid.split("::", 1)[-1]
        self._name = _name_of_snapshot(qualified)
        # Behind a parameter, `-2` may be part of the parameter of another case.
        self._counter = "~" if "[" in qualified else "-"
        self._update = bool(request.config.getoption("--mcp-update-snapshots"))
        self._taken = 0

    def __call__(self, value: Any, name: Optional[str] = None, *, redact: Sequence[str] = ()) -> None:
        """`redact` are what the suites know: kinds such as `uuid`, places such as `$.id`, patterns such as `/\\d+ ms/`."""
        __tracebackhide__ = True
        self._taken += 1
        if name is None:
            name = self._name if self._taken == 1 else f"{self._name}{self._counter}{self._taken}"
        self._folder.mkdir(parents=True, exist_ok=True)
        _client.snapshot(value, self._folder / f"{name}.json", redact=redact, update=self._update)


@pytest.fixture
def mcp_snapshot(request: pytest.FixtureRequest) -> Snapshots:
    """`mcp_snapshot(value)` holds a value against a reviewed file; `--mcp-update-snapshots` writes it."""
    return Snapshots(request)


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    """Runs a coroutine that uses this package and that no other plugin runs, so that none is needed."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or not _is_ours(pyfuncitem):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters if name in pyfuncitem.funcargs}
    asyncio.run(_run_and_close(pyfuncitem.obj, arguments))
    return True


def _is_ours(item: pytest.Function) -> bool:
    if any(item.get_closest_marker(name) for name in ("asyncio", "anyio", "trio")):
        return False
    return item.get_closest_marker("mcp") is not None or "mcp_client" in item.fixturenames or _is_of_a_module_that_uses_us(item.obj)


def _is_of_a_module_that_uses_us(test: Callable[..., Any]) -> bool:
    """A coroutine beside `import mcproof`: pytest itself would run none."""
    names: Dict[str, Any] = getattr(inspect.unwrap(test), "__globals__", {})
    ours = __name__.partition(".")[0]
    for value in list(names.values()):
        if inspect.ismodule(value):
            place = value.__name__
        elif inspect.isclass(value) or inspect.isfunction(value):
            place = value.__module__ or ""
        else:
            continue
        if place.partition(".")[0] == ours:
            return True
    return False


async def _run_and_close(test: Callable[..., Any], arguments: Dict[str, Any]) -> None:
    __tracebackhide__ = True
    client = arguments.get("mcp_client")
    try:
        await test(**arguments)
    except BaseException:
        # What the test failed with tells more than what closing then fails with.
        with contextlib.suppress(McproofError, WireFault):
            await _close(client)
        raise
    with contextlib.suppress(McproofError):
        await _close(client)


async def _close(client: Any) -> None:
    if isinstance(client, Client):
        await client.aclose()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[_opened] = []
    _current.append(item)
    _forgotten.begin()
    try:
        return (yield)
    finally:
        _forgotten.end()
        _current.remove(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fails the test during which something came that no conforming server sends, in any client that it used."""
    __tracebackhide__ = True
    try:
        result = yield
    except pytest.skip.Exception:
        raise
    except BaseException:
        # The test's own failure comes first.
        for fault in _new_faults(item):
            item.add_report_section("call", FAULTS, str(fault))
        raise
    _fail_if_forgotten()
    faults = _new_faults(item)
    if faults:
        raise WireFault("\n".join(str(fault) for fault in faults), [found for fault in faults for found in fault.faults])
    return result


def _new_faults(item: pytest.Item) -> List[WireFault]:
    _clients[:] = [client for client in _clients if client._closed is None]
    found = [client.new_fault() for client in _clients if client._talked]
    marker = item.get_closest_marker("mcp")
    if marker is not None and marker.kwargs.get("allow_faults"):
        return []
    return [fault for fault in found if fault is not None]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: Optional[pytest.Item]) -> Generator[None, Any, Any]:
    """Ends the clients that no test can use any more and that nobody has closed: what their servers do wrong until then fails the test."""
    # A test that failed may have ended before its `await`.
    _forgotten.taken()
    try:
        result = yield
    except BaseException:
        # The fixture's own failure comes first.
        for error in _close_left(item, nextitem):
            item.add_report_section("teardown", FAULTS, _told(error))
        raise
    errors = _close_left(item, nextitem)
    forgotten = _forgotten.taken()
    if errors:
        if forgotten is not None:
            item.add_report_section("teardown", "MCP", forgotten)
        _raise_together(errors)
    if forgotten is not None:
        pytest.fail(forgotten, pytrace=False)
    return result


def _raise_together(errors: List[Exception]) -> NoReturn:
    __tracebackhide__ = True
    faults = [error for error in errors if isinstance(error, WireFault)]
    others = [error for error in errors if not isinstance(error, WireFault)]
    if not faults and len(others) == 1:
        raise others[0]
    told = "\n".join(_told(error) for error in [*faults, *others])
    if not faults:
        raise McproofError(told) from others[0]
    raise WireFault(told, [found for fault in faults for found in fault.faults]) from (others[0] if others else None)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, WireFault) else f"a client cannot be closed: {type(error).__name__}: {error}"


def _close_left(item: pytest.Item, nextitem: Optional[pytest.Item]) -> List[Exception]:
    """One that cannot be closed keeps no other from being closed and judged."""
    found: List[Exception] = []
    marker = item.get_closest_marker("mcp")
    allowed = item.stash[_opened] if marker is not None and marker.kwargs.get("allow_faults") else []
    left = [client for client in _clients if client._opened is not None and client._closed is None]
    for client in left:
        if nextitem is not None and not client.is_left_behind:
            continue
        try:
            client.close_from_outside()
        except WireFault as fault:
            if not any(client is other for other in allowed):
                found.append(fault)
        except McproofError:
            # The drive is gone, and its servers with it.
            pass
        except Exception as error:
            found.append(error)
    return found


def _fail_if_forgotten() -> None:
    forgotten = _forgotten.taken()
    if forgotten is not None:
        pytest.fail(forgotten, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    trace = bool(item.config.getoption("--mcp-trace"))
    if report.failed or (trace and report.when == "call"):
        for client in item.stash.get(_opened, []):
            section = _section(client, None if trace else FRAMES_OF_A_FAILURE)
            if section is not None:
                report.sections.append(section)
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """With `--mcp-trace`, passed tests are reported too; the report has come from a worker, where there are any."""
    reporter = _terminal()
    if reporter is None or report.when != "call" or report.failed or not _trace_is_on():
        return
    for title, text in report.sections:
        if title.startswith(TITLE):
            reporter.ensure_newline()
            reporter.section(f"{title}, {report.nodeid}", sep="-")
            reporter.write_line(text)


def _terminal() -> Any:
    return _configs[-1].pluginmanager.getplugin("terminalreporter") if _configs else None


def _trace_is_on() -> bool:
    return bool(_configs and _configs[-1].getoption("--mcp-trace"))


def _remember(client: Client) -> None:
    _clients.append(client)
    if _current:
        _current[-1].stash[_opened].append(client)


def _section(client: Client, last: Optional[int]) -> "Optional[tuple[str, str]]":
    if client._drive is None:
        return None
    try:
        transcript = client.transcript(frames=False, last=last)
    except (McproofError, OSError) as error:
        return f"{TITLE}: {client.session}", f"it cannot be shown: {error}"
    if not transcript.text:
        return None
    opened = client._opened or {}
    name = (opened.get("server_info") or {}).get("name", "a server that did not open")
    over = f" over {opened['transport']}" if "transport" in opened else ""
    return f"{TITLE}: {name}{over} ({client.session})", transcript.text
