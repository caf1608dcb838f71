"""What may be named as a server, over which transport, and the errors for what may not."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional

import pytest

import mcproof
from mcproof import App, Server, test_client
from mcproof._binary import find_binary
from mcproof._drive import Drive
from mcproof._targets import resolve

from . import features

FEATURES = Path(__file__).with_name("features.py")
# Starts at once, where it does not matter which server it is.
DEMO = [find_binary(), "demo", "shop"]
SERVE = [sys.executable, "-m", "mcproof.serve", f"{FEATURES}:server"]


@pytest.mark.parametrize("transport", ["memory", "stdio", "http", "sse"])
async def test_an_app_is_reached_over_every_transport(transport: str) -> None:
    async with test_client(f"{FEATURES}:server", transport=transport) as client:
        assert client.transport == {"memory": "in-memory"}.get(transport, transport)
        assert (await client.call_tool("greet", name="Ann")).text == "Hello, Ann!"


async def test_a_command_is_a_list_or_a_text() -> None:
    async with test_client(DEMO) as client:
        assert client.transport == "stdio" and client.pid
        pid = client.pid
    assert not Path(f"/proc/{pid}").exists()
    async with test_client(shlex.join(DEMO)) as client:
        assert client.server_info["name"] == "mcproof-demo-shop"


async def test_sessions_share_a_server_that_was_started_for_them() -> None:
    command = [*SERVE, "--transport", "http", "--port", "${port}"]
    async with Server(command, url="http://127.0.0.1:${port}/mcp") as server:
        async with test_client(server) as one, test_client(server.url) as other:
            assert (await one.call_tool("greet", name="Ann")).text == (await other.call_tool("greet", name="Ann")).text
            assert one.transport == other.transport == "http"
        pid = server.pid
    assert not Path(f"/proc/{pid}").exists()


async def test_a_name_is_looked_up_in_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"mine": {"command": DEMO[0], "args": DEMO[1:]}}}))
    async with test_client("mine", config=config) as client:
        assert client.server_info["name"] == "mcproof-demo-shop"


async def test_a_server_that_does_not_start_is_told_with_its_last_words() -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no DATABASE_URL')"]
    with pytest.raises(mcproof.OpenError, match="no DATABASE_URL"):
        async with test_client(command):
            pass


async def test_a_server_that_dies_is_told() -> None:
    async with test_client(DEMO) as client:
        assert client.pid is not None
        os.kill(client.pid, 9)
        with pytest.raises(mcproof.Unanswered, match="SIGKILL|signal 9|killed"):
            await client.call_tool("check_inventory", product_id="PROD-123")
        assert client.ended is not None and client.ended["exit"] == {"signal": 9}


async def test_a_contract_is_held_against_a_lock_file(tmp_path: Path) -> None:
    lock = tmp_path / "mcproof.lock"
    subprocess.run([find_binary(), "lock", "--lock", str(lock), "--", *DEMO], check=True, capture_output=True)
    async with test_client(DEMO) as client:
        await client.assert_contract(lock)
        assert (await client.diff(lock))["ok"]
    async with test_client([*DEMO[:-1], "tracker"]) as client:
        with pytest.raises(mcproof.ContractBroken, match="check_inventory"):
            await client.assert_contract(lock)


async def test_a_check_explores_a_server_that_can_be_started() -> None:
    async with test_client(DEMO) as client:
        report = await client.check()
        report.assert_ok()
        assert "rules passed" in report.text
        assert [finding.rule for finding in (await client.check(only=["tool-has-description"])).findings] == []


def _check(target: Any, transport: Optional[str], expected: Dict[str, Any], **options: Any) -> None:
    assert resolve(target, transport, **options).target == expected


def test_targets_become_what_the_engine_takes() -> None:
    python = sys.executable
    _check(["a", "b c"], None, {"command": ["a", "b c"]})
    _check("a 'b c'", "stdio", {"command": ["a", "b c"]})
    _check("./a", None, {"command": ["./a"]})
    _check("name", None, {"server": "name"})
    _check(Path("x.py"), None, {"command": [python, "x.py"]})
    _check("http://localhost/mcp", None, {"url": "http://localhost/mcp"})
    _check("http://localhost/mcp", "sse", {"url": "http://localhost/mcp", "transport": "sse"})
    _check(["a"], None, {"command": ["a"], "env": {"K": "v"}, "cwd": "/tmp"}, env={"K": "v"}, cwd=Path("/tmp"))
    _check("http://x/", None, {"url": "http://x/", "headers": {"a": "b"}}, headers={"a": "b"})
    _check(["a", "${port}"], "http", {"command": ["a", "${port}"], "url": "u", "transport": "http"}, url="u")
    _check({"stdio": ["a"], "http": "http://x/"}, None, {"command": ["a"]})
    _check({"stdio": ["a"], "http": "http://x/"}, "http", {"url": "http://x/", "transport": "http"})
    _check({"command": ["a"]}, None, {"command": ["a"]})
    _check(App("shop.py:make", ("x",)), "stdio", {"command": [python, "-m", "mcproof.serve", "shop.py:make", "x"]})
    _check(features.server(), None, {"relay": "messages"})


def _refuse(target: Any, transport: Optional[str], expected: str) -> None:
    with pytest.raises(mcproof.BadInput, match=expected):
        resolve(target, transport)


def test_what_is_no_target_is_refused_with_what_is_one() -> None:
    _refuse(features.server(), "http", "server object of this process cannot be reached over http")
    _refuse(["a"], "http", "reached over stdio, not over http, give its `url` too")
    _refuse("http://x/", "stdio", "reached over http or sse, not over stdio")
    _refuse(["a"], "carrier-pigeon", "expected one of memory, stdio, http, sse")
    _refuse({"stdio": ["a"]}, "http", "no server is set for http, only for stdio")
    _refuse({"stdoi": ["a"]}, None, "not stdoi")
    _refuse(42, None, "an int is not a server|a int is not a server")
    _refuse([], None, "is not a server")
    _refuse(f"{FEATURES}:nothing", None, "has no `nothing`")
    _refuse(f"{FEATURES}:asyncio", None, "is not a server object")
    _refuse("no/such/file.py:server", None, "file not found")


def test_the_binary_is_the_one_that_the_variable_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    binary = tmp_path / "mcproof"
    monkeypatch.setenv("MCPROOF_BINARY", str(binary))
    with pytest.raises(FileNotFoundError, match="MCPROOF_BINARY names"):
        find_binary()
    binary.write_text("#!/bin/sh\nexit 2\n")
    binary.chmod(0o755)
    assert find_binary() == str(binary)
    with pytest.raises(mcproof.DriveError, match="mcproof drive` cannot be used: .*exit code 2"):
        Drive()
