"""Tests for MCP servers, with the wire as evidence.

    async with mcproof.test_client(server) as client:
        result = await client.call_tool("create_order", product_id="PROD-123", quantity=2)
        result.expect({"status": "pending", "id": {"$regex": "^ORD-"}})

`server` is a server object (FastMCP, the Python SDK), a command, a URL, a name of mcp.json, or an `App`.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from ._client import Client, expect, snapshot, test_client
from ._drive import end_all
from ._errors import (
    BadInput,
    ContractBroken,
    DriveError,
    ExpectationFailed,
    Gone,
    McproofError,
    OpenError,
    Refused,
    RequestCanceled,
    ToolError,
    Unanswered,
    WireFault,
)
from ._federation import FederationClient, create_federation_client
from ._results import (
    Answer,
    CallResult,
    CheckReport,
    Completion,
    Content,
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
from ._sync import SyncClient, sync_test_client
from ._targets import App

__version__ = _version("mcproof")
create_test_client = test_client

__all__ = [
    "Answer",
    "App",
    "BadInput",
    "CallResult",
    "CheckReport",
    "Client",
    "Completion",
    "Content",
    "ContractBroken",
    "DriveError",
    "ExpectationFailed",
    "FederationClient",
    "Gone",
    "Listing",
    "McproofError",
    "Notification",
    "OpenError",
    "Progress",
    "Prompt",
    "PromptResult",
    "RawAnswer",
    "ReadResult",
    "Refused",
    "RequestCanceled",
    "Resource",
    "ResourceTemplate",
    "Server",
    "SyncClient",
    "Tool",
    "ToolError",
    "Transcript",
    "Unanswered",
    "WireFault",
    "create_federation_client",
    "create_test_client",
    "end_all",
    "expect",
    "snapshot",
    "sync_test_client",
    "test_client",
]
