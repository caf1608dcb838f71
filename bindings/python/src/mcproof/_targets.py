"""What a test may name as its server, and what the engine makes of it. Reads no files and starts nothing, but for `App.load`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import BadInput
from ._relay import is_server_object

if TYPE_CHECKING:
    from ._client import Client

TRANSPORTS = ("memory", "stdio", "http", "sse")
Target = Union[str, "os.PathLike[str]", Sequence[str], Mapping[str, Any], object]
_APP = re.compile(r"(?P<place>[\w./-]+\.py|[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


@dataclass(frozen=True)
class App:
    """A server object, or a function that makes one, in a Python file or module: `App("servers.py:shop")`.

    Over `memory` it is imported here; over `stdio`, `http` and `sse` it runs in a process of its own (`python -m mcproof.serve`).
    """

    place: str
    args: Sequence[str] = ()
    transport: Optional[str] = None
    python: str = sys.executable

    def test_client(self, **options: Any) -> "Client":
        """A client of it, over the transport that was chosen here; the options are those of `mcproof.test_client`."""
        from ._client import Client

        return Client(self, **options)

    def load(self) -> Any:
        """Imports it; a function is called, and makes a fresh server each time."""
        match = _APP.fullmatch(self.place)
        if match is None:
            raise BadInput(f"`{self.place}` is not a place like `servers.py:shop` or `package.module:server`")
        place, name = match["place"], match["name"]
        module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
        found = getattr(module, name, None)
        if found is None:
            raise BadInput(f"{place} has no `{name}`")
        if not is_server_object(found) and callable(found):
            found = found(*self.args)
        if not is_server_object(found):
            raise BadInput(f"`{self.place}` is not a server object of the Python SDK or FastMCP: found a {type(found).__name__}")
        return found

    def target_over(self, transport: str) -> Dict[str, Any]:
        command = [self.python, "-m", "mcproof.serve", self.place, *self.args]
        if transport == "stdio":
            return {"command": command}
        path = "sse" if transport == "sse" else "mcp"
        return {
            "command": [*command, "--transport", transport, "--port", "${port}"],
            "url": "http://127.0.0.1:${port}/" + path,
            "transport": transport,
        }


@dataclass(frozen=True)
class Resolved:
    """A target for `open`, and the server object, if it is one of this process."""

    target: Dict[str, Any]
    server: Optional[object] = None


def resolve(
    target: Target,
    transport: Optional[str],
    *,
    url: Optional[str] = None,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Union[str, "os.PathLike[str]"]] = None,
    headers: Optional[Mapping[str, str]] = None,
    config: Optional[Union[str, "os.PathLike[str]"]] = None,
    port_from: Optional[str] = None,
) -> Resolved:
    if transport is not None and transport not in TRANSPORTS:
        raise BadInput(f"unknown transport `{transport}`: expected one of {', '.join(TRANSPORTS)}")
    if isinstance(target, Mapping) and not _is_engines(target):
        target, transport = _of_transport(target, transport)
    if isinstance(target, str) and _APP.fullmatch(target):
        target = App(target)
    if isinstance(target, App):
        transport = transport or target.transport
        if transport is None or transport == "memory":
            target = target.load()
        else:
            target = target.target_over(transport)
    if is_server_object(target):
        return _in_memory(target, transport)

    found = _engine_target(target, url)
    _refuse_other_transport(found, transport)
    if transport in ("http", "sse") and ("url" in found or "spawned" in found):
        found["transport"] = transport
    if env and "command" in found:
        found["env"] = {**found.get("env", {}), **env}
    if cwd is not None and "command" in found:
        found["cwd"] = os.fspath(cwd)
    if headers and "command" not in found or headers and "url" in found:
        found["headers"] = {**found.get("headers", {}), **headers}
    if config is not None:
        found["config"] = os.fspath(config)
    if port_from is not None:
        found["port_from"] = port_from
    return Resolved(found)


def _in_memory(target: object, transport: Optional[str]) -> Resolved:
    if transport not in (None, "memory"):
        raise BadInput(
            f"a server object of this process cannot be reached over {transport}: name where it is made, "
            'as `mcproof.App("servers.py:make_server")`, so that another process can make it too'
        )
    return Resolved({"relay": "messages"}, target)


def _is_engines(target: Mapping[str, Any]) -> bool:
    return any(key in target for key in ("command", "url", "spawned", "server", "relay"))


def _of_transport(targets: Mapping[str, Any], transport: Optional[str]) -> "tuple[Any, str]":
    unknown = [key for key in targets if key not in TRANSPORTS]
    if unknown or not targets:
        raise BadInput(f"a server by transport has the keys {', '.join(TRANSPORTS)}, not {', '.join(map(str, unknown)) or 'none'}")
    chosen = transport or next(iter(targets))
    if chosen not in targets:
        raise BadInput(f"no server is set for {chosen}, only for {', '.join(targets)}")
    return targets[chosen], chosen


def _engine_target(target: Any, url: Optional[str]) -> Dict[str, Any]:
    if isinstance(target, Mapping):
        return dict(target)
    command: Optional[List[str]] = None
    if isinstance(target, os.PathLike):
        path = os.fspath(target)
        command = [sys.executable, path] if path.endswith(".py") else [path]
    elif isinstance(target, str):
        if re.match(r"https?://", target):
            return {"url": target}
        if not target.strip():
            raise BadInput("the server is an empty text")
        # One word is a name in mcp.json, as on the command line; a program that takes no arguments is a list.
        words = shlex.split(target)
        if len(words) == 1 and "/" not in target:
            return {"server": target}
        command = words
    elif isinstance(target, Sequence) and target and all(isinstance(word, (str, os.PathLike)) for word in target):
        command = [os.fspath(word) for word in target]
    if command is None:
        raise BadInput(
            f"a {type(target).__name__} is not a server: give a server object of the Python SDK or FastMCP, a command, a URL, "
            'a name of mcp.json, or `mcproof.App("servers.py:server")`'
        )
    return {"command": command} if url is None else {"command": command, "url": url}


def _refuse_other_transport(found: Mapping[str, Any], transport: Optional[str]) -> None:
    if transport is None or "server" in found or "spawned" in found:
        return
    has = ("http", "sse") if "url" in found else ("stdio",)
    if transport not in has:
        hint = ", give its `url` too" if has == ("stdio",) and transport != "memory" else ""
        raise BadInput(f"this server is reached over {' or '.join(has)}, not over {transport}{hint}")


def _import_file(path: Path) -> Any:
    path = path.resolve()
    if not path.is_file():
        raise BadInput(f"file not found: {path}")
    name = f"_mcproof_app_{path.stem}_{abs(hash(str(path)))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
