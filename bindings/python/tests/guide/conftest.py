"""Every test of the guide runs in memory, over stdio and over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

import pytest

from mcproof import App

Serve = Callable[..., App]
SERVERS = Path(__file__).with_name("servers.py")


@pytest.fixture(params=["memory", "stdio", "http"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Where a server of servers.py is reached over the transport of this run."""

    def place(name: str, *args: str) -> App:
        return App(f"{SERVERS}:{name}", args, transport=request.param)

    return place
