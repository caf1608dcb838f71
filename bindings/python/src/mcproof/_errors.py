"""What can go wrong, as exceptions. Their texts come from the engine and are printed as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional

if TYPE_CHECKING:
    from ._results import CallResult


class McproofError(Exception):
    """A request of a test failed. `str()` is the diagnosis with the wire around it."""

    def __init__(self, text: str, data: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(text.rstrip("\n"))
        self.data: Dict[str, Any] = dict(data or {})

    @property
    def diagnostic(self) -> Optional[Dict[str, Any]]:
        """The diagnosis as data, where there is one."""
        found = self.data.get("diagnostic")
        return found if isinstance(found, dict) else None


class DriveError(McproofError):
    """`mcproof drive` itself could not be started, or ended, or rejected a message: a bug of this package, or the wrong binary."""


class BadInput(McproofError, ValueError):
    """The request is not valid: a misspelled option, a mistake in an expectation, an unknown target."""


class OpenError(McproofError, ConnectionError):
    """The server could not be started or reached, or the handshake failed."""


class Unanswered(McproofError, TimeoutError):
    """No response came: a timeout, a crash, a closed connection."""


class Refused(McproofError):
    """The server returned a JSON-RPC error."""

    @property
    def error(self) -> Dict[str, Any]:
        """The JSON-RPC error as the server sent it."""
        found = self.data.get("error")
        return found if isinstance(found, dict) else {}

    @property
    def code(self) -> Optional[int]:
        found = self.error.get("code")
        return found if isinstance(found, int) else None


class ToolError(McproofError):
    """A tool returned `isError`; raised by `call_tool`, never by `call`."""

    def __init__(self, text: str, result: "CallResult", data: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(text, data)
        self.result = result


class RequestCanceled(McproofError):
    """The request was canceled before its response came."""


class Gone(McproofError):
    """The session is closed already, or was never opened."""


class ExpectationFailed(AssertionError):
    """A value is not what was expected; `str()` is the diff, with the wire around it."""

    def __init__(self, text: str, differences: Optional[List[Dict[str, Any]]] = None, diagnostic: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(text.rstrip("\n"))
        self.differences = differences or []
        self.diagnostic = diagnostic


class WireFault(AssertionError):
    """A server sent what no conforming server sends, or ended unasked; `str()` is what it was, with the wire around it."""

    def __init__(self, text: str, faults: Optional[List[Dict[str, Any]]] = None) -> None:
        super().__init__(text.rstrip("\n"))
        self.faults = faults or []


class ContractBroken(AssertionError):
    """The server's contract differs from its lock file; `str()` is the difference."""

    def __init__(self, text: str, diff: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(text.rstrip("\n"))
        self.diff = diff


_KINDS = {"bad-input": BadInput, "not-open": OpenError, "unanswered": Unanswered, "refused": Refused, "canceled": RequestCanceled, "gone": Gone}
_CODES = {-32602: BadInput, 1: OpenError, 2: Unanswered, 3: Refused, 4: RequestCanceled, 5: Gone}


def from_wire(error: Mapping[str, Any]) -> McproofError:
    """The exception for an error response of `mcproof drive`."""
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    text = data.get("text")
    if not isinstance(text, str) or not text.strip():
        text = str(error.get("message", "mcproof drive reported no reason"))
    kind = _KINDS.get(str(data.get("kind"))) or _CODES.get(error.get("code", 0)) or DriveError
    return kind(text, data)
