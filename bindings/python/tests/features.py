"""A server with something of everything that a client can be asked or told: FastMCP, for the tests of the clients."""

from __future__ import annotations

import asyncio
from typing import Any, Dict

from fastmcp import Context, FastMCP


def server() -> FastMCP:
    made = FastMCP("features", instructions="Ask for anything.")

    @made.tool
    def greet(name: str) -> str:
        """Greets somebody."""
        return f"Hello, {name}!"

    @made.tool
    def order(quantity: int) -> Dict[str, Any]:
        if quantity > 10:
            raise ValueError("Insufficient inventory")
        return {"id": f"ORD-{quantity}", "status": "pending", "quantity": quantity}

    @made.tool
    async def count(to: int, ctx: Context) -> str:
        for step in range(1, to + 1):
            await ctx.report_progress(step, to, f"step {step}")
        return "counted"

    @made.tool
    async def talk(ctx: Context) -> str:
        await ctx.info("to the log")
        return "said"

    @made.tool
    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    @made.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Which size?", response_type=str)
        return f"{answer.action}: {getattr(answer, 'data', None)}"

    @made.resource("memo://today")
    def today() -> str:
        return "buy milk"

    @made.resource("memo://{day}")
    def memo(day: str) -> str:
        return f"nothing on {day}"

    @made.prompt
    def summarize(subject: str) -> str:
        return f"Summarize {subject}"

    return made
