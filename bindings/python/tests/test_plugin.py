"""The pytest plugin, seen from outside: whole runs of pytest, their output and their processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, List, Optional

import pytest

from mcproof._binary import find_binary

pytest_plugins = ["pytester"]

FEATURES = Path(__file__).with_name("features.py")
HEAD = f"""
import asyncio, os, pathlib
import pytest
import mcproof

@pytest.fixture
def mcp_server():
    return mcproof.App({str(FEATURES)!r} + ":server")
"""

# A server that starts at once, where it does not matter which one it is.
DEMO = """
import os, pathlib
import pytest
from mcproof._binary import find_binary

@pytest.fixture
def mcp_server():
    return [find_binary(), "demo", "shop"]
"""


def run(pytester: pytest.Pytester, test: str, *arguments: str, head: str = HEAD) -> pytest.RunResult:
    """Runs pytest in a process of its own, without any plugin but ours and those that are named."""
    pytester.makepyfile(test_it=head + test)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *arguments)


WITHOUT_ASYNCIO = ("-p", "no:asyncio")
FAILING = """
async def test_order(mcp_client):
    (await mcp_client.call_tool("order", quantity=3)).expect({"status": "paid"})

def test_plain(mcp_client):
    mcp_client.call_tool("order", quantity=3).expect({"status": "paid"})
"""


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_failure_shows_the_frames(pytester: pytest.Pytester, plugins: List[str]) -> None:
    result = run(pytester, FAILING, *plugins)
    result.assert_outcomes(failed=2)
    shown = [
        'E *expected "paid", found "pending"*',
        "*MCP wire: features over in-memory*",
        "*→ tools/call*order*",
        "*← #* result *",
    ]
    result.stdout.fnmatch_lines([*shown, "*test_plain*", *shown])
    # What is ours is not shown as the place of the failure.
    result.stdout.no_fnmatch_line("*_client.py*")


def test_a_passing_test_shows_the_wire_if_asked(pytester: pytest.Pytester) -> None:
    test = """
async def test_stock(mcp_client):
    await mcp_client.call_tool("check_inventory", product_id="PROD-123")
"""
    result = run(pytester, test, *WITHOUT_ASYNCIO, "--mcp-trace", head=DEMO)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*MCP wire: mcproof-demo-shop over stdio*", "*→ tools/call*"])
    result = run(pytester, test, *WITHOUT_ASYNCIO, head=DEMO)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*MCP wire*")


def test_a_test_runs_once_for_each_transport(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.mcp(transports=["memory", "stdio", "http"])
async def test_order(mcp_client, mcp_transport):
    await mcp_client.ping()
    assert mcp_client.transport == {"memory": "in-memory"}.get(mcp_transport, mcp_transport)

@pytest.mark.mcp(era="legacy", elicitation={"value": "small"})
def test_ask(mcp_client):
    assert mcp_client.era == "legacy"
    assert mcp_client.call_tool("ask").text == "accept: small"
"""
    result = run(pytester, test, *WITHOUT_ASYNCIO, "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_order?memory? PASSED*", "*test_order?stdio? PASSED*", "*test_order?http? PASSED*", "*test_ask PASSED*"])


def test_a_server_that_does_not_open_fails_with_its_last_words(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.mcp(server=["sh", "-c", "echo no DATABASE_URL >&2; exit 3"])
async def test_order(mcp_client):
    await mcp_client.ping()
"""
    result = run(pytester, test, *WITHOUT_ASYNCIO, head="import pytest\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *exited with code 3*", "E *no DATABASE_URL*"])


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_server_that_does_not_open_fails_a_test_that_sends_nothing(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
@pytest.fixture
def mcp_server():
    return ["sh", "-c", "echo no DATABASE_URL >&2; exit 3"]

async def test_start(mcp_client):
    pass

class TestMore:
    @pytest.mark.parametrize("n", [1])
    async def test_start(self, n, mcp_client):
        pass

def test_plain(mcp_client):
    pass
"""
    result = run(pytester, test, *plugins, head="import pytest\n")
    result.assert_outcomes(failed=2, errors=1)
    result.stdout.fnmatch_lines(["E *exited with code 3*"] * 3)


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_request_that_is_not_awaited_fails_the_test(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
async def test_forgotten(mcp_client):
    mcp_client.call_tool("no such tool")

async def test_kept(mcp_client):
    kept = mcp_client.ping()
    await mcp_client.ping()

def test_plain():
    mcproof.test_client([find_binary(), "demo", "shop"]).open()

@pytest.fixture
def late(mcp_client):
    yield
    mcp_client.list_tools()

async def test_teardown(late, mcp_client):
    await mcp_client.ping()

async def test_failed(mcp_client):
    ping = mcp_client.ping()
    assert False, "its own words"

async def test_sound(mcp_client):
    import asyncio
    ping, pings = mcp_client.ping(), [mcp_client.ping() for _ in range(1200)]
    await asyncio.gather(*pings)
    await asyncio.wait_for(ping, 30)
    task = asyncio.create_task(mcp_client.ping())
    await task
    async with mcproof.test_client([find_binary(), "demo", "shop"]) as other:
        await other.ping()

def test_sound_too(mcp_client):
    mcp_client.ping()
"""
    result = run(pytester, test, *plugins, "--disable-warnings", "-W", "ignore", head=DEMO + "import mcproof\n")
    result.assert_outcomes(failed=4, passed=3, errors=1)
    result.stdout.fnmatch_lines(
        [
            "`Client.list_tools` was never awaited*",
            "`Client.call_tool` was never awaited, so that nothing was sent: write `await` (*test_it.py:*)",
            "`Client.ping` was never awaited*",
            "`Client.open` was never awaited*",
            "E *its own words*",
        ]
    )


def test_transports_are_a_list(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.mcp(transports="stdio")
def test_it(mcp_client):
    mcp_client.ping()
"""
    result = run(pytester, test, head=DEMO)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*`transports` of the marker `mcp` is a list: write transports=?'stdio'?*"])


def test_a_test_without_a_server_is_told_how_to_name_one(pytester: pytest.Pytester) -> None:
    result = run(pytester, "def test_it(mcp_client): pass", head="")
    result.stdout.fnmatch_lines(["*no server to test: write a fixture `mcp_server`*"])
    pytester.makeini(f"[pytest]\nmcp_server = {find_binary()} demo shop\n")
    run(pytester, "def test_it(mcp_client): mcp_client.ping()", head="").assert_outcomes(passed=1)


def test_snapshots_are_new_then_written_then_held(pytester: pytest.Pytester) -> None:
    test = """
async def test_order(mcp_client, mcp_snapshot):
    order = await mcp_client.call_tool("create_order", product_id="PROD-123", quantity=int(os.environ["QUANTITY"]))
    mcp_snapshot(order.payload, redact=["$.created_at"])
"""
    os.environ["QUANTITY"] = "3"
    try:
        new = run(pytester, test, *WITHOUT_ASYNCIO, head=DEMO)
        new.assert_outcomes(failed=1)
        run(pytester, test, *WITHOUT_ASYNCIO, "--mcp-update-snapshots", head=DEMO).assert_outcomes(passed=1)
        assert (pytester.path / "__snapshots__/test_it/test_order.json").is_file()
        run(pytester, test, *WITHOUT_ASYNCIO, head=DEMO).assert_outcomes(passed=1)
        os.environ["QUANTITY"] = "4"
        differs = run(pytester, test, *WITHOUT_ASYNCIO, head=DEMO)
        differs.assert_outcomes(failed=1)
        differs.stdout.fnmatch_lines(["E *quantity*3*4*"])
    finally:
        del os.environ["QUANTITY"]


def test_each_case_has_a_snapshot_of_its_own(pytester: pytest.Pytester) -> None:
    test = """
CASES = ["+", "*", "a b", "a-b", "a_b", "-a-b", "1", "1-2", "é", "e"]

@pytest.mark.parametrize("op", CASES)
def test_op(mcp_snapshot, op):
    mcp_snapshot({"op": op})
    mcp_snapshot({"second": op})

def test_plain(mcp_snapshot):
    mcp_snapshot("plain")
    mcp_snapshot("second")

class TestA:
    def test_b(self, mcp_snapshot):
        mcp_snapshot("in a class")

@pytest.mark.parametrize("x", ["test_b"])
def testA(mcp_snapshot, x):
    mcp_snapshot("no class")
"""
    run(pytester, test, "--mcp-update-snapshots", head=DEMO).assert_outcomes(passed=13)
    run(pytester, test, head=DEMO).assert_outcomes(passed=13)
    names = {path.name for path in (pytester.path / "__snapshots__/test_it").iterdir()}
    assert len(names) == 2 * 10 + 2 + 2
    readable = ["test_plain.json", "test_plain-2.json", "test_op-a-b.json", "test_op-1.json", "test_op-1~2.json", "test_op-1-2.json", "TestA-test_b.json"]
    assert names.issuperset(readable)


def test_every_worker_of_xdist_has_a_drive_of_its_own(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.parametrize("n", range(6))
async def test_order(mcp_client, n):
    await mcp_client.ping()
    path = pathlib.Path("drive-%s-%d" % (os.environ["PYTEST_XDIST_WORKER"], mcp_client._drive.pid))
    path.touch()
    if n == 5:
        (await mcp_client.call_tool("check_inventory", product_id="PROD-123")).expect({"available": 7})
"""
    result = run(pytester, test, *WITHOUT_ASYNCIO, "-p", "xdist", "-n", "2", head=DEMO)
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["*MCP wire: mcproof-demo-shop over stdio*"])
    drives = [path.name.split("-")[1:] for path in pytester.path.glob("drive-*")]
    assert {worker for worker, _ in drives} == {"gw0", "gw1"}
    assert len({pid for _, pid in drives}) == len(drives) == 2


def test_killing_pytest_leaves_no_process(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(
        test_it=HEAD
        + """
@pytest.mark.mcp(transports=["stdio"])
async def test_order(mcp_client):
    await mcp_client.ping()
    pathlib.Path("pids").write_text(f"{mcp_client._drive.pid} {mcp_client.pid}")
    pathlib.Path("pids").rename("ready")
    await mcp_client.call("sleep", {"seconds": 600})
"""
    )
    runner = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *WITHOUT_ASYNCIO, str(path)],
        cwd=pytester.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    try:
        ready = pytester.path / "ready"
        _until(ready.exists, 120, runner)
        pids = [int(pid) for pid in ready.read_text().split()]
        assert all(_lives(pid) for pid in pids)
        runner.send_signal(signal.SIGKILL)
        runner.wait()
        _until(lambda: not any(_lives(pid) for pid in pids), 30)
    finally:
        runner.kill()


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def _until(fact: Callable[[], bool], seconds: float, runner: "Optional[subprocess.Popen[bytes]]" = None) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert runner is None or runner.poll() is None, "pytest ended by itself"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


# A server over stdio with one fault for each of its tools.
FAULTY = '''
import json, os, sys

def send(ident, **answer):
    print(json.dumps({"jsonrpc": "2.0", "id": ident, **answer}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    ident, method = message.get("id"), message.get("method")
    if ident is None:
        continue
    if method == "initialize":
        server = {"name": "faulty", "version": "1"}
        send(ident, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server})
    elif method == "tools/call":
        tool = message["params"]["name"]
        result = {"content": [{"type": "text", "text": tool} if tool != "malformed" else {"type": "text"}]}
        if tool == "large":
            result["content"][0]["text"] = "x" * (4 << 20)
        if tool == "noise":
            print("debug: called", flush=True)
        if tool == "crash":
            os._exit(9)
        send(ident, result=result)
        if tool == "twice":
            send(ident, result=result)
        if tool == "end":
            os._exit(7)
    else:
        send(ident, error={"code": -32601, "message": "no such method"})
if "late" in sys.argv:
    print("debug: bye", flush=True)
'''
FAULTY_HEAD = """
import sys
import pytest
import mcproof

@pytest.fixture
def mcp_server():
    return [sys.executable, "faulty.py"]

@pytest.fixture(scope="module")
def shared():
    with mcproof.sync_test_client([sys.executable, "faulty.py"]) as client:
        yield client
"""
CLEAR = "*WireFault: error: *a line on stdout that is not an MCP message*debug: called*"


def run_faulty(pytester: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(faulty=FAULTY)
    return run(pytester, test, *arguments, head=FAULTY_HEAD)


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_fault_on_the_wire_fails_the_test(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
def test_sound(mcp_client):
    mcp_client.call_tool("sound")

def test_noise(mcp_client):
    mcp_client.call_tool("noise")

async def test_noise_in_a_coroutine(mcp_client):
    await mcp_client.call_tool("noise")

def test_twice(mcp_client):
    mcp_client.call_tool("twice")

def test_end(mcp_client):
    mcp_client.call_tool("end")

def test_own_client(mcp_server):
    with mcproof.sync_test_client(mcp_server) as client:
        client.call_tool("noise")
"""
    result = run_faulty(pytester, test, *plugins)
    outcomes = result.parseoutcomes()
    # A coroutine that the plugin runs by itself is closed within the test, and the fault is told there.
    assert outcomes == {"passed": 1, "failed": 5}, result.stdout.str()
    result.stdout.fnmatch_lines([CLEAR, "*wire *", "*← debug: called", "*hint *stderr*", "*another response with id*", "*exited with code 7*"])


def test_a_fault_in_a_shared_client_fails_the_test_that_it_came_in(pytester: pytest.Pytester) -> None:
    test = """
def test_before(shared):
    shared.call_tool("sound")

def test_noise(shared):
    shared.call_tool("noise")

def test_after(shared):
    shared.call_tool("sound")

def test_end(shared):
    shared.call_tool("end")
"""
    result = run_faulty(pytester, test, "-v", *WITHOUT_ASYNCIO)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*test_before PASSED*", "*test_noise FAILED*", "*test_after PASSED*", "*test_end FAILED*"])


def test_faults_may_be_allowed(pytester: pytest.Pytester) -> None:
    test = """
@pytest.mark.mcp(allow_faults=True)
def test_marked(mcp_client, shared):
    mcp_client.call_tool("noise")
    shared.call_tool("twice")

def test_own_client(mcp_server):
    with mcproof.sync_test_client(mcp_server, allow_faults=True) as client:
        client.call_tool("end")

def test_shared(shared):
    shared.call_tool("sound")

def test_expected_crash(mcp_client):
    with pytest.raises(mcproof.Unanswered):
        mcp_client.call_tool("crash")
    assert mcp_client.ended["exit"] == {"code": 9}
"""
    run_faulty(pytester, test, *WITHOUT_ASYNCIO).assert_outcomes(passed=4)


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_crash_is_no_error_that_a_test_expects(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
def test_refused(mcp_client):
    with pytest.raises(Exception):
        mcp_client.call_tool("crash")

async def test_refused_in_a_coroutine(mcp_client):
    with pytest.raises(mcproof.McproofError):
        await mcp_client.call_tool("crash")

def test_shared(shared):
    with pytest.raises(mcproof.Unanswered):
        shared.call_tool("crash")

def test_expected(mcp_client):
    with pytest.raises(mcproof.Unanswered):
        mcp_client.call_tool("crash")
    assert mcp_client.ended
"""
    result = run_faulty(pytester, test, *plugins)
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*WireFault: error: server exited with code 9*, instead of sending a response*", "*hint *`client.ended`*"])


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_fault_does_not_hide_the_failure_of_the_test(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
def test_plain(mcp_client):
    mcp_client.call_tool("noise")
    assert 1 == 2

async def test_coroutine(mcp_client):
    await mcp_client.call_tool("noise")
    assert 1 == 2
"""
    result = run_faulty(pytester, test, *plugins)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E *assert 1 == 2", "*MCP faults*", "*FAILED*assert 1 == 2", "*FAILED*assert 1 == 2"])
    result.stdout.no_fnmatch_line("*WireFault*")


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_a_malformed_message_fails_the_test(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
def test_malformed(mcp_client):
    mcp_client.call("malformed")

async def test_malformed_in_a_coroutine(mcp_client):
    await mcp_client.call("malformed")

@pytest.mark.mcp(skip_rules=["message-matches-schema"])
def test_left_out(mcp_client):
    mcp_client.call("malformed")

def test_unknown_rule(mcp_server):
    with pytest.raises(mcproof.BadInput, match="message-matches-schema"):
        mcproof.sync_test_client(mcp_server, skip_rules=["message-matches-shema"]).open()
"""
    result = run_faulty(pytester, test, *plugins)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*WireFault: error: *content?0?.text* is missing*", "*hint *mcproof explain message-matches-schema*skip_rules*"])


def test_too_much_to_be_judged_fails_the_test(pytester: pytest.Pytester) -> None:
    test = """
def test_large(mcp_client):
    for _ in range(8):
        mcp_client.call_tool("large")

@pytest.mark.mcp(allow_faults=True)
def test_allowed(mcp_client):
    for _ in range(8):
        mcp_client.call_tool("large")
"""
    result = run_faulty(pytester, test, *WITHOUT_ASYNCIO)
    outcomes = result.parseoutcomes()
    assert outcomes.get("passed", 0) + outcomes.get("errors", 0) + outcomes.get("failed", 0) == 2 and outcomes.get("passed") == 1, outcomes
    result.stdout.fnmatch_lines(["*WireFault: error: not judged: * frames of this session were not kept*", "*hint *`allow_faults`*"])


LATE = """
import asyncio

@pytest.fixture
def mcp_server():
    return [sys.executable, "faulty.py", "late"]
"""
BYE = "*WireFault: error: *`debug: bye`*"


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, ("-o", "asyncio_mode=auto")])
def test_noise_at_the_end_of_a_server_is_told(pytester: pytest.Pytester, plugins: List[str]) -> None:
    test = """
def test_plain(mcp_client):
    mcp_client.call_tool("sound")

async def test_coroutine(mcp_client):
    await mcp_client.call_tool("sound")

def test_own_client(mcp_server):
    with mcproof.sync_test_client(mcp_server) as client:
        client.call_tool("sound")

@pytest.mark.mcp(allow_faults=True)
def test_allowed(mcp_client):
    mcp_client.call_tool("sound")
"""
    result = run_faulty(pytester, LATE + test, *plugins)
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] + outcomes["failed"] == 4 and outcomes["failed"] + outcomes["errors"] == 3, result.stdout.str()
    result.stdout.fnmatch_lines([BYE] * 3)


@pytest.mark.parametrize("tool, told", [("sound", BYE), ("noise", CLEAR)])
def test_a_client_that_nobody_closes_is_judged_until_its_end(pytester: pytest.Pytester, tool: str, told: str) -> None:
    test = f"""
COMMAND = [sys.executable, "faulty.py", "late"]

@pytest.fixture(scope="session")
def unclosed():
    client = mcproof.sync_test_client(COMMAND)
    client.open()
    return client

def test_unclosed(unclosed):
    unclosed.call_tool("sound")

def test_coroutine():
    async def call():
        client = mcproof.test_client(COMMAND)
        await client.open()
    asyncio.run(call())

def test_last():
    client = mcproof.sync_test_client(COMMAND)
    client.call_tool({tool!r})
"""
    result = run_faulty(pytester, LATE + test, *WITHOUT_ASYNCIO)
    result.stdout.fnmatch_lines([told])
    assert result.ret == 1


def test_what_else_fails_at_teardown_hides_no_fault(pytester: pytest.Pytester) -> None:
    test = """
COMMAND = [sys.executable, "faulty.py", "late"]

@pytest.fixture
def broken():
    yield
    raise ValueError("its own words")

def test_broken(broken):
    mcproof.sync_test_client(COMMAND).call_tool("sound")
"""
    result = run_faulty(pytester, LATE + test, *WITHOUT_ASYNCIO)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *its own words*", "*MCP faults*", "*`debug: bye`*"])


def test_a_client_that_cannot_be_closed_keeps_no_other_from_being_judged(pytester: pytest.Pytester) -> None:
    test = """
COMMAND = [sys.executable, "faulty.py", "late"]

def never():
    raise ValueError("cannot be closed")

def test_two():
    first, second = mcproof.sync_test_client(COMMAND), mcproof.sync_test_client(COMMAND)
    first.call_tool("sound")
    second.call_tool("sound")
    first.asynchronous.close_from_outside = never
"""
    result = run_faulty(pytester, LATE + test, *WITHOUT_ASYNCIO)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines([BYE, "*a client cannot be closed: ValueError: cannot be closed*"])


def test_an_interrupted_exit_leaves_no_server(pytester: pytest.Pytester) -> None:
    script = pytester.makepyfile(
        script="""
import atexit
import mcproof
from mcproof import _client, _drive
from mcproof._binary import find_binary

def interrupted(self):
    raise KeyboardInterrupt

client = mcproof.sync_test_client([find_binary(), "demo", "shop"])
client.list_tools()
drive = client.asynchronous._drive
_client.Client.close_at_exit = interrupted
atexit.unregister(_drive._end_at_exit)
try:
    _drive._end_at_exit()
except KeyboardInterrupt:
    print(drive.alive)
"""
    )
    ran = subprocess.run([sys.executable, str(script)], cwd=pytester.path, capture_output=True, text=True, check=False)
    assert ran.stdout == "False\n", ran.stderr


def test_a_client_that_nobody_closes_is_judged_when_python_exits(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(faulty=FAULTY)
    script = pytester.makepyfile(
        script="""
import sys
import mcproof

client = mcproof.sync_test_client([sys.executable, "faulty.py", "late"])
client.call_tool("noise")
"""
    )
    ran = subprocess.run([sys.executable, str(script)], cwd=pytester.path, capture_output=True, text=True, check=False)
    assert "a client was not closed, and no test was told:\nerror: " in ran.stderr and "debug: called" in ran.stderr, ran.stderr
    assert "debug: bye" in ran.stderr, ran.stderr


SHOP = """
from fastmcp import FastMCP

server = FastMCP("shop")
stock = {"PROD-123": 10}

@server.tool
def create_order(product_id: str, quantity: int) -> dict:
    stock[product_id] -= quantity
    return {"id": "ORD-1", "status": "pending"}

@server.tool
def check_inventory(product_id: str) -> dict:
    return {"available": stock[product_id]}
"""


@pytest.mark.parametrize("plugins", [WITHOUT_ASYNCIO, (), ("-o", "asyncio_mode=auto")])
def test_the_first_snippet_of_the_readme_passes(pytester: pytest.Pytester, plugins: List[str]) -> None:
    readme = Path(__file__).parents[1].joinpath("README.md").read_text()
    pytester.makepyfile(shop=SHOP)
    snippet = readme.split("```python\n", 1)[1].split("```", 1)[0]
    run(pytester, snippet, *plugins, "-p", "no:anyio", head="").assert_outcomes(passed=1)


def test_a_coroutine_of_a_file_without_mcproof_is_not_run(pytester: pytest.Pytester) -> None:
    result = run(pytester, "async def test_it(): pass", *WITHOUT_ASYNCIO, head="")
    assert result.parseoutcomes().get("passed") is None
