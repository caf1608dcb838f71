"""`from mcproof.fastmcp import FastMCP`: the FastMCP that is installed, whose servers have a `test_client()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from ._client import Client

if TYPE_CHECKING:
    from fastmcp import FastMCP as _FastMCP  # type: ignore[import-not-found,unused-ignore]
else:
    try:
        from fastmcp import FastMCP as _FastMCP
    except ImportError:
        # Python SDK 1 has one of its own; in SDK 2 it is called differently.
        try:
            from mcp.server.fastmcp import FastMCP as _FastMCP
        except ImportError:
            from mcp.server.mcpserver import MCPServer as _FastMCP


class FastMCP(_FastMCP):  # type: ignore[misc,unused-ignore]
    """A server that is tested where it is made. The two timeouts, in seconds, are those of its test clients."""

    def __init__(
        self, *args: Any, connection_timeout: Optional[float] = None, invocation_timeout: Optional[float] = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self._mcproof_timeouts = {"connect_timeout": connection_timeout, "timeout": invocation_timeout}

    def test_client(self, **options: Any) -> Client:
        """A client of this server in memory; the options are those of `mcproof.test_client`."""
        return Client(self, **{**self._mcproof_timeouts, **options})
