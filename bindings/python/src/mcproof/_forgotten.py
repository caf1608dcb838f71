"""Requests that a test has written without `await`: Python runs nothing of them, so that the test would pass without them.

Knows the methods of our clients, not what they do, and no test runner.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, Coroutine, Dict, List, NamedTuple, Optional, Type


class _Made(NamedTuple):
    coroutine: "Coroutine[Any, Any, Any]"
    name: str
    place: str


# How many are kept before those that have begun are left out: a test may make very many requests.
_MANY = 1000
_originals: Dict[Type[Any], Dict[str, Any]] = {}
# One list for each test that runs: a test may run pytest inside of itself.
_lists: List[List[_Made]] = []


def follow(*kinds: Type[Any]) -> None:
    """Notes from now on, while a test runs, what the public methods of these classes return to callers outside of this package."""
    for kind in kinds:
        if kind in _originals:
            continue
        found = {name: each for name, each in vars(kind).items() if not name.startswith("_") and inspect.iscoroutinefunction(each)}
        _originals[kind] = found
        for name, method in found.items():
            setattr(kind, name, _noting(method, f"{kind.__name__}.{name}"))


def unfollow() -> None:
    """Takes `follow` back."""
    for kind, found in _originals.items():
        for name, method in found.items():
            setattr(kind, name, method)
    _originals.clear()


def begin() -> None:
    """A test begins."""
    _lists.append([])


def end() -> None:
    """The test that began last has ended."""
    _lists.pop()


def taken() -> Optional[str]:
    """What the test that runs has not awaited so far, as a message; each is told once."""
    if not _lists:
        return None
    made, _lists[-1] = _lists[-1], []
    forgotten = [each for each in made if _has_not_begun(each)]
    if not forgotten:
        return None
    return "\n".join(f"`{each.name}` was never awaited, so that nothing was sent: write `await` ({each.place})" for each in forgotten)


def _has_not_begun(made: _Made) -> bool:
    return inspect.getcoroutinestate(made.coroutine) == inspect.CORO_CREATED


def _noting(method: "Callable[..., Coroutine[Any, Any, Any]]", name: str) -> "Callable[..., Coroutine[Any, Any, Any]]":
    @functools.wraps(method)
    def noted(*arguments: Any, **options: Any) -> "Coroutine[Any, Any, Any]":
        coroutine = method(*arguments, **options)
        if _lists:
            caller = sys._getframe(1)
            module = caller.f_globals.get("__name__")
            # What this package begins, it also ends.
            if module is None or module.partition(".")[0] != "mcproof":
                made = _lists[-1]
                if len(made) >= _MANY:
                    made[:] = [each for each in made if _has_not_begun(each)]
                made.append(_Made(coroutine, name, f"{caller.f_code.co_filename}:{caller.f_lineno}"))
        return coroutine

    if sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(noted)
    return noted
