"""What a test answers when a server asks: values, policies, or functions of the test."""

from __future__ import annotations

import inspect
from typing import Any, Awaitable, Callable, Dict, Mapping, Sequence, Union

JsonObject = Dict[str, Any]
Callback = Callable[[JsonObject], Union[Any, Awaitable[Any]]]
Elicitation = Union[str, Mapping[str, Any], Callback]
Sampling = Union[str, Mapping[str, Any], Callback]
Roots = Union[Sequence[str], Callback]

_METHODS = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def declare(answers: Mapping[str, Any]) -> JsonObject:
    """As `open` takes them: a function is `callback`, everything else is what it is."""
    return {kind: "callback" if callable(value) else value for kind, value in answers.items() if value is not None}


async def answer(answers: Mapping[str, Any], method: str, params: JsonObject) -> Any:
    """What the function of the test says to what the server asks."""
    kind = _METHODS.get(method)
    callback = answers.get(kind) if kind else None
    if not callable(callback):
        raise LookupError(f"the test has no answer to `{method}`")
    said = callback(params)
    if inspect.isawaitable(said):
        said = await said
    return _whole(kind, said)


def _whole(kind: Any, said: Any) -> Any:
    """A short answer as the whole result that the server is to get."""
    if kind == "elicitation":
        if said is None or isinstance(said, str):
            return {"action": said or "accept"}
        return said if "action" in said else {"action": "accept", "content": dict(said)}
    if kind == "sampling" and isinstance(said, str):
        return {"role": "assistant", "model": "mcproof", "stopReason": "endTurn", "content": {"type": "text", "text": said}}
    if kind == "roots" and not isinstance(said, Mapping):
        return {"roots": [{"uri": root} if isinstance(root, str) else root for root in said]}
    return said
