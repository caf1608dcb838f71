"""How a test responds to requests of the server: values, policies, or functions of the test."""

from __future__ import annotations

import inspect
from typing import Any, Awaitable, Callable, Dict, Mapping, Sequence, Union

JsonObject = Dict[str, Any]
Callback = Callable[[JsonObject], Union[Any, Awaitable[Any]]]
Elicitation = Union[str, Mapping[str, Any], Callback]
Sampling = Union[str, Mapping[str, Any], Callback]
Roots = Union[Sequence[str], Callback]

_METHODS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def declare(responses: Mapping[str, Any]) -> JsonObject:
    """As `open` takes them: a function is `callback`, everything else is what it is."""
    return {kind: "callback" if callable(value) else value for kind, value in responses.items() if value is not None}


async def respond(responses: Mapping[str, Any], method: str, params: JsonObject) -> Any:
    """The response that the test's function returns to a request of the server."""
    kind = _METHODS.get(method)
    callback = responses.get(kind) if kind else None
    if not callable(callback):
        raise LookupError(f"the test has no client response for `{method}`")
    reply = callback(params)
    if inspect.isawaitable(reply):
        reply = await reply
    return _whole(kind, reply)


def _whole(kind: Any, reply: Any) -> Any:
    """A short response as the whole result that the server is to get."""
    if kind == "elicitation":
        if reply is None or isinstance(reply, str):
            return {"action": reply or "accept"}
        return reply if "action" in reply else {"action": "accept", "content": dict(reply)}
    if kind == "sampling" and isinstance(reply, str):
        return {"role": "assistant", "model": "mcproof", "stopReason": "endTurn", "content": {"type": "text", "text": reply}}
    if kind == "roots" and not isinstance(reply, Mapping):
        return {"roots": [{"uri": root} if isinstance(root, str) else root for root in reply]}
    return reply
