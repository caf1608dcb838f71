"""How long a call takes in memory: through this package, next to FastMCP's own client and the SDK's, in one run, as ratios.

    python bindings/python/benches/latency.py [ROUNDS]

The three take turns in short rounds, so that what the machine does meanwhile hits all of them. The medians are compared.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any, Awaitable, Callable, Dict, List

from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP

import mcproof

CALLS_A_ROUND = 25


def make() -> FastMCP:
    server = FastMCP("bench")

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    return server


async def time_round(call: Callable[[], Awaitable[Any]], at_once: int) -> List[float]:
    times = []
    for _ in range(CALLS_A_ROUND):
        started = time.perf_counter()
        if at_once == 1:
            await call()
        else:
            await asyncio.gather(*(call() for _ in range(at_once)))
        times.append((time.perf_counter() - started) / at_once)
    return times


async def measure(rounds: int, at_once: int) -> Dict[str, float]:
    arguments = {"a": 1, "b": 2}
    async with mcproof.test_client(make(), allow_faults=True) as ours, FastMCPClient(make()) as theirs:
        calls: Dict[str, Callable[[], Awaitable[Any]]] = {
            "mcproof": lambda: ours.call_tool("add", arguments),
            "FastMCP's client": lambda: theirs.call_tool("add", arguments),
            "the SDK's session": lambda: theirs.session.call_tool("add", arguments),
        }
        times: Dict[str, List[float]] = {name: [] for name in calls}
        for round_ in range(rounds + 1):
            for name, call in calls.items():
                taken = await time_round(call, at_once)
                # The first round warms up.
                times[name] += taken if round_ else []
        return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for at_once in (1, 20):
        medians = asyncio.run(measure(rounds, at_once))
        print(f"{at_once} at once, median of {rounds * CALLS_A_ROUND}:")
        for name, median in medians.items():
            ratio = medians["mcproof"] / median
            print(f"  {name:18} {median * 1e6:8.0f} µs a call" + ("" if name == "mcproof" else f"   mcproof takes {ratio:.2f} times that"))


if __name__ == "__main__":
    main()
