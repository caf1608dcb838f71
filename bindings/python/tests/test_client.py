"""What clients do, asynchronous and synchronous, with a server object in memory."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

import mcproof
from mcproof import CallResult, Notification, Progress, sync_test_client, test_client

from . import features

# SDK 1 calls what it does not know invalid.
NO_SUCH_METHOD = (-32601, -32602)


async def test_everything_that_a_server_has_can_be_asked_for() -> None:
    async with test_client(features.server()) as client:
        assert client.server_info["name"] == "features"
        assert client.instructions == "Ask for anything."
        assert client.transport == "in-memory"
        assert "greet" in (await client.list_tools()).names
        greet = (await client.list_tools())[0]
        assert (greet.name, greet.description) == ("greet", "Greets somebody.")
        assert greet.input_schema["required"] == ["name"]
        assert [resource.uri for resource in await client.list_resources()] == ["memo://today"]
        assert [template.uri_template for template in await client.list_resource_templates()] == ["memo://{day}"]
        assert (await client.read_resource("memo://friday")).text == "nothing on friday"
        assert (await client.list_prompts())[0].arguments[0]["name"] == "subject"
        assert (await client.get_prompt("summarize", {"subject": "bees"})).messages[0].content.text == "Summarize bees"
        assert (await client.request("tools/list")).raw["tools"][0]["name"] == "greet"
        await client.ping()


async def test_a_result_has_its_parts() -> None:
    async with test_client(features.server()) as client:
        result = await client.call("order", {"quantity": 2})
        assert isinstance(result, CallResult) and not result.is_error
        order = {"id": "ORD-2", "status": "pending", "quantity": 2}
        assert result.payload == result.structured == result.json() == result.content[0].data == order
        assert result.elapsed > 0 and result.frame is not None and result.http is None
        assert client.transcript().frames[result.frame]


async def test_call_gives_what_call_tool_raises() -> None:
    async with test_client(features.server()) as client:
        failed = await client.call("order", {"quantity": 99})
        failed.expect_error("/insufficient/i")
        failed.expect_error("nsufficient inv")
        failed.expect_error("'order': I")
        with pytest.raises(mcproof.ExpectationFailed):
            failed.expect_error("sufficient stock")
        with pytest.raises(mcproof.ToolError, match="Insufficient inventory") as raised:
            await client.call_tool("order", quantity=99)
        assert raised.value.result.is_error and "Insufficient" in raised.value.result.text
        with pytest.raises(mcproof.ExpectationFailed):
            (await client.call("order", {"quantity": 1})).expect_error()


async def test_a_payload_is_expected_of_a_call_that_succeeds() -> None:
    async with test_client(features.server()) as client:
        failed = await client.call("order", {"quantity": 99})
        for expectation in ({"$text": "/Insufficient/"}, {"$any": True}):
            with pytest.raises(mcproof.ExpectationFailed, match="expected success, found an `isError` result"):
                failed.expect(expectation)
        failed.expect_raw({"isError": True})
        failed.expect_error().expect({"$text": "/Insufficient/"})
        with pytest.raises(mcproof.ToolError) as raised:
            await client.call_tool("order", quantity=99)
        raised.value.result.expect({"$text": "/Insufficient/"})


async def test_a_refusal_is_the_error_of_the_server() -> None:
    async with test_client(features.server()) as client:
        with pytest.raises(mcproof.Refused) as raised:
            await client.request("no/such/method")
        assert raised.value.code in NO_SUCH_METHOD
        assert "no/such/method" in str(raised.value)


async def test_expectations_are_those_of_the_suites() -> None:
    async with test_client(features.server()) as client:
        result = await client.call_tool("order", quantity=3)
        result.expect({"status": "pending", "id": {"$regex": "^ORD-"}}).expect({"quantity": {"$gte": 3}})
        result.expect({"$text": "/pending/"})
        result.expect_raw({"content": {"$len": 1}})
        result.expect({"id": "${wanted}"}, variables={"wanted": "ORD-3"})
        with pytest.raises(mcproof.ExpectationFailed) as raised:
            result.expect({"status": "paid"})
        assert 'expected "paid", found "pending"' in str(raised.value)
        assert "tools/call" in str(raised.value)
        assert raised.value.differences[0]["path"] == "status"
        with pytest.raises(mcproof.BadInput, match="regx"):
            result.expect({"id": {"$regx": "x"}})


def test_any_value_is_held_against_an_expectation() -> None:
    mcproof.expect([1, 2, 3], {"$len": 3})
    with pytest.raises(mcproof.ExpectationFailed):
        mcproof.expect([1, 2, 3], {"$len": 4})


@pytest.mark.parametrize("coroutine", [True, False])
async def test_progress_is_told_before_the_answer(coroutine: bool) -> None:
    told: List[float] = []

    async def later(progress: Progress) -> None:
        told.append(progress.progress)

    async with test_client(features.server()) as client:
        result = await client.call("count", {"to": 3}, progress=later if coroutine else lambda progress: told.append(progress.progress))
        assert result.text == "counted"
    assert told == [1, 2, 3]


async def test_logs_and_notifications_arrive() -> None:
    logs: List[Dict[str, Any]] = []
    heard: List[Notification] = []
    async with test_client(features.server(), era="legacy", on_log=logs.append, on_notification=heard.append) as client:
        await client.call_tool("talk")
        told = await client.wait_for("notifications/message", timeout=5)
        assert told.params["data"]
        assert client.notifications[-1].method == "notifications/message"
        with pytest.raises(mcproof.Unanswered):
            await client.wait_for("notifications/message", timeout=0.05)
    assert len(logs) == len(heard) == 1


async def test_what_a_callback_raises_fails_the_test() -> None:
    def refuse(progress: Progress) -> None:
        assert progress.progress > 1, "the first step is told"

    with pytest.raises(AssertionError, match="the first step is told"):
        async with test_client(features.server()) as client:
            await client.call("count", {"to": 2}, progress=refuse)


async def _ask(**answers: Any) -> str:
    async with test_client(features.server(), era="legacy", **answers) as client:
        return (await client.call_tool("ask")).text


async def test_a_server_is_answered_by_value_policy_or_function() -> None:
    asked: List[str] = []

    async def answer(params: Dict[str, Any]) -> Dict[str, Any]:
        asked.append(params["message"])
        return {"value": "large"}

    assert await _ask(elicitation={"value": "small"}) == "accept: small"
    assert await _ask(elicitation="decline") == "decline: None"
    assert await _ask(elicitation=answer) == "accept: large"
    assert await _ask(elicitation=lambda params: "cancel") == "cancel: None"
    assert asked == ["Which size?"]


async def test_the_answer_can_change_in_a_session() -> None:
    async with test_client(features.server(), era="legacy", elicitation="decline") as client:
        assert (await client.call_tool("ask")).text.startswith("decline")
        await client.set_answers(elicitation=lambda params: {"value": "medium"})
        assert (await client.call_tool("ask")).text == "accept: medium"


async def test_a_call_can_take_too_long_and_the_session_goes_on() -> None:
    async with test_client(features.server()) as client:
        with pytest.raises(mcproof.Unanswered, match="sleep|tools/call"):
            await client.call("sleep", {"seconds": 30}, timeout=0.1)
        assert (await client.call_tool("greet", name="Ann")).text == "Hello, Ann!"


async def test_a_canceled_call_is_canceled_on_the_wire() -> None:
    async with test_client(features.server(), era="legacy") as client:
        calling = asyncio.ensure_future(client.call("sleep", {"seconds": 30}))
        while "sleep" not in client.transcript().text:
            await asyncio.sleep(0.01)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await client.ping()
        assert "notifications/cancelled" in client.transcript().text


async def test_a_hundred_calls_at_once_do_not_mix() -> None:
    async with test_client(features.server()) as client:
        results = await asyncio.gather(*(client.call_tool("greet", name=str(n)) for n in range(100)))
        assert [result.text for result in results] == [f"Hello, {n}!" for n in range(100)]


async def test_big_messages_pass_both_ways() -> None:
    async with test_client(features.server()) as client:
        name = "x" * 3_000_000
        assert (await client.call_tool("greet", name=name)).text == f"Hello, {name}!"


async def test_raw_messages_are_sent_as_they_stand() -> None:
    async with test_client(features.server(), era="legacy") as client:
        answer = await client.raw({"jsonrpc": "2.0", "id": 77, "method": "no/such/method"})
        assert answer is not None and answer.error is not None and answer.error["code"] in NO_SUCH_METHOD


async def test_what_was_seen_can_be_checked_and_hashed() -> None:
    async with test_client(features.server()) as client:
        await client.list_tools()
        report = await client.check()
        assert report.report and "tool-has-description" in {finding.rule for finding in report.findings}
        hashes = await client.hash()
        assert hashes["tools"].startswith("sha256:")
        contract = await client.contract()
        assert contract["hashes"] == hashes


async def test_the_first_request_opens_a_session() -> None:
    client = test_client(features.server())
    with pytest.raises(mcproof.Gone):
        client.server_info
    assert (await client.call_tool("greet", name="Ann")).text == "Hello, Ann!"
    await client.aclose()
    with pytest.raises(mcproof.Gone):
        await client.ping()


async def test_a_server_object_that_crashes_is_told() -> None:
    class Crashing:
        def create_initialization_options(self) -> None:
            return None

        async def run(self, read: Any, write: Any, options: Any) -> None:
            raise RuntimeError("no database")

    with pytest.raises(mcproof.OpenError, match="no database"):
        await test_client(Crashing(), connect_timeout=5).open()


async def test_an_opening_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    client = test_client(["sh", "-c", script])
    opening = asyncio.ensure_future(client.open())
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        await asyncio.sleep(0.01)
    opening.cancel()
    await client.aclose()
    pid = int((tmp_path / "pid").read_text())
    for _ in range(3000):
        if not Path(f"/proc/{pid}").exists():
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError(f"process {pid} still lives")


def test_plain_functions_have_a_client_too() -> None:
    with sync_test_client(features.server()) as client:
        assert client.server_info["name"] == "features"
        client.call_tool("order", quantity=3).expect({"status": "pending"})
        assert client.list_tools().names[0] == "greet"
        with pytest.raises(mcproof.ToolError):
            client.call_tool("order", quantity=99)
        with pytest.raises(mcproof.ExpectationFailed):
            client.call_tool("order", quantity=3).expect({"status": "paid"})
        assert "tools/call" in client.transcript().text


def test_threads_use_one_server_together() -> None:
    with sync_test_client(features.server()) as client:
        said: List[str] = []

        def call(name: str) -> None:
            said.append(client.call_tool("greet", name=name).text)

        threads = [threading.Thread(target=call, args=(str(n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(said) == [f"Hello, {n}!" for n in range(8)]


def test_event_loops_take_turns_with_one_drive() -> None:
    async def drive_pid() -> int:
        async with test_client(features.server()) as client:
            drive = client._drive
            assert drive is not None
            return drive.pid

    assert len({asyncio.run(drive_pid()) for _ in range(3)}) == 1


def test_a_forked_child_leaves_the_drive_alone() -> None:
    mcproof.expect(1, 1)
    child = os.fork()
    if child == 0:
        try:
            mcproof.expect(2, 2)
        finally:
            mcproof.end_all()
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    mcproof.expect(3, 3)
