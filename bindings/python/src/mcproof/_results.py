"""Responses of servers, with Python names. The raw response is always there, as `.raw`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Dict, Generic, List, Mapping, Optional, TypeVar, cast

if TYPE_CHECKING:
    from ._client import Client

JsonObject = Dict[str, Any]
ItemT = TypeVar("ItemT", bound="Item")
SelfT = TypeVar("SelfT", bound="Answer")
CallT = TypeVar("CallT", bound="CallResult")

# What the engine takes for a pattern and not for plain text, and what means something in one.
_PATTERN = re.compile(r"/.+/[imsx]*", re.DOTALL)
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~/-]")


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


class Item:
    """An object that a server sent. What has no property of its own is read by its name, in snake_case or as it was sent."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: JsonObject = dict(raw)

    @property
    def meta(self) -> JsonObject:
        return cast(JsonObject, self.raw.get("_meta") or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "raw":
            raise AttributeError(name)
        for key in (name, _camel(name)):
            if key in self.raw:
                return self.raw[key]
        raise AttributeError(f"the server sent no `{_camel(name)}` here, only {', '.join(self.raw) or 'nothing'}")

    def __getitem__(self, key: str) -> Any:
        return self.raw[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Item) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({json.dumps(self.raw, ensure_ascii=False)})"


class _Named(Item):
    @property
    def name(self) -> str:
        return cast(str, self.raw["name"])

    @property
    def title(self) -> Optional[str]:
        return self.raw.get("title")

    @property
    def description(self) -> Optional[str]:
        return self.raw.get("description")


class Tool(_Named):
    @property
    def input_schema(self) -> JsonObject:
        return cast(JsonObject, self.raw["inputSchema"])

    @property
    def output_schema(self) -> Optional[JsonObject]:
        return self.raw.get("outputSchema")

    @property
    def annotations(self) -> JsonObject:
        return cast(JsonObject, self.raw.get("annotations") or {})


class Resource(_Named):
    @property
    def uri(self) -> str:
        return cast(str, self.raw["uri"])

    @property
    def mime_type(self) -> Optional[str]:
        return self.raw.get("mimeType")


class ResourceTemplate(_Named):
    @property
    def uri_template(self) -> str:
        return cast(str, self.raw["uriTemplate"])

    @property
    def mime_type(self) -> Optional[str]:
        return self.raw.get("mimeType")


class Prompt(_Named):
    @property
    def arguments(self) -> List[JsonObject]:
        return cast(List[JsonObject], self.raw.get("arguments") or [])


class Content(Item):
    """One block of content."""

    @property
    def type(self) -> str:
        return cast(str, self.raw["type"])

    @property
    def text(self) -> str:
        """The text of a text block, or of an embedded resource."""
        if "text" in self.raw:
            return cast(str, self.raw["text"])
        resource = self.raw.get("resource")
        if isinstance(resource, dict) and "text" in resource:
            return cast(str, resource["text"])
        raise AttributeError(f"a block of type `{self.raw.get('type')}` has no text")

    @property
    def data(self) -> Any:
        """What a text block says as JSON (its text, where that is none); the base64 of an image or of audio."""
        if "data" in self.raw:
            return self.raw["data"]
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


class Listing(List[ItemT], Generic[ItemT]):
    """All pages of a list: a list, that is also there under the name that the protocol gives it (`.tools`, …)."""

    def __init__(self, what: str, items: List[ItemT], pages: int, elapsed: float) -> None:
        super().__init__(items)
        self.what = what
        self.pages = pages
        self.elapsed = elapsed

    @property
    def names(self) -> List[str]:
        return [cast(str, item.raw.get("name")) for item in self]

    def _as(self, what: str) -> "Listing[ItemT]":
        if what != self.what:
            raise AttributeError(f"this is a list of {self.what}, not of {what}")
        return self

    @property
    def tools(self) -> "Listing[ItemT]":
        return self._as("tools")

    @property
    def resources(self) -> "Listing[ItemT]":
        return self._as("resources")

    @property
    def resource_templates(self) -> "Listing[ItemT]":
        return self._as("templates")

    @property
    def prompts(self) -> "Listing[ItemT]":
        return self._as("prompts")


class Answer:
    """The response to a request. `raw` is the result as it came, `frame` its place in the transcript, `elapsed` is in seconds."""

    def __init__(self, client: "Client", answer: Mapping[str, Any]) -> None:
        self._client = client
        self.raw: Any = answer.get("result")
        self.elapsed: float = answer.get("elapsed_ms", 0.0) / 1000
        self.frame: Optional[int] = answer.get("frame")
        self.http: Optional[JsonObject] = answer.get("http")

    @property
    def meta(self) -> JsonObject:
        """What the server sent as `_meta`."""
        found = self.raw.get("_meta") if isinstance(self.raw, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def payload(self) -> Any:
        """What expectations are about."""
        return self.raw

    def expect(self: SelfT, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> SelfT:
        """Holds the payload against an expectation in the language of the suites.

        Raises `ExpectationFailed` with a diff and the wire. Returns itself, so that expectations can be chained.
        """
        __tracebackhide__ = True
        self._client._expect({"value": self.payload}, expectation, variables, self.frame)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({json.dumps(self.raw, ensure_ascii=False)})"


class CallResult(Answer):
    """The response to a tool call."""

    def __init__(self, client: "Client", answer: Mapping[str, Any], error_expected: bool = False) -> None:
        super().__init__(client, answer)
        self._error_expected = error_expected
        self._payload = answer.get("payload")
        self._text: Optional[str] = answer.get("text")
        self.is_error: bool = bool(answer.get("is_error"))
        blocks = self.raw.get("content") if isinstance(self.raw, dict) else None
        self.content: List[Content] = [Content(block) for block in blocks or [] if isinstance(block, dict)]

    @property
    def payload(self) -> Any:
        """The structured content if there is one, else the one text block as JSON, else its text, else None."""
        return self._payload

    @property
    def data(self) -> Any:
        """The same as `payload`."""
        return self._payload

    @property
    def structured(self) -> Any:
        return self.raw.get("structuredContent") if isinstance(self.raw, dict) else None

    @property
    def structured_content(self) -> Any:
        return self.structured

    @property
    def text(self) -> str:
        """All text blocks, joined by line feeds."""
        if self._text is None:
            raise AttributeError("this result has no text block")
        return self._text

    def json(self) -> Any:
        """The text as JSON."""
        return json.loads(self.text)

    def expect(self: CallT, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> CallT:
        """Holds the payload, and with `$text` the text, against an expectation in the language of the suites.

        As there, a call that failed (`isError`) meets none, unless `expect_error` came before. Raises `ExpectationFailed` with a diff and
        the wire. Returns itself, so that expectations can be chained.
        """
        __tracebackhide__ = True
        self._client._expect(self._called(), expectation, variables, self.frame)
        return self

    def expect_raw(self: CallT, expectation: Any, *, variables: Optional[Mapping[str, Any]] = None) -> CallT:
        """Holds the whole result, with `content`, `_meta` and `isError`, against an expectation."""
        __tracebackhide__ = True
        self._client._expect({"value": self.raw}, expectation, variables, self.frame)
        return self

    def expect_error(self: CallT, text: Any = None) -> CallT:
        """Expects `isError`, and if `text` is given, that the text of the response contains it, as `tool_error` does in suites.

        `text` may also be `/a pattern/i`, which the text has to match.
        """
        __tracebackhide__ = True
        self._client._expect({"value": self.raw}, {"isError": True}, None, self.frame)
        self._error_expected = True
        if text is not None:
            if isinstance(text, str) and not _PATTERN.fullmatch(text):
                text = "/" + _SPECIAL.sub(r"\\\g<0>", text) + "/"
            self._client._expect(self._called(), {"$text": text}, None, self.frame)
        return self

    def _called(self) -> JsonObject:
        """The result for the engine, which expects success if it is not told otherwise."""
        what: JsonObject = {"result": self.raw}
        if self._error_expected and self.is_error:
            what["allow_error"] = True
        return what


class ReadResult(Answer):
    """What reading a resource gave."""

    @property
    def contents(self) -> List[Item]:
        return [Item(item) for item in self.raw.get("contents") or []]

    @property
    def text(self) -> str:
        """All texts, joined by line feeds."""
        return "\n".join(item.raw["text"] for item in self.contents if "text" in item.raw)


class PromptMessage(Item):
    @property
    def role(self) -> str:
        return cast(str, self.raw["role"])

    @property
    def content(self) -> Content:
        return Content(self.raw["content"])


class PromptResult(Answer):
    """What a prompt gave."""

    @property
    def messages(self) -> List[PromptMessage]:
        return [PromptMessage(message) for message in self.raw.get("messages") or []]


class Completion(Answer):
    """What was proposed to complete an argument."""

    @property
    def values(self) -> List[str]:
        return cast(List[str], (self.raw.get("completion") or {}).get("values") or [])


class RawAnswer(Answer):
    """The response to a raw message: `error` is the JSON-RPC error, where the server refused."""

    def __init__(self, client: "Client", answer: Mapping[str, Any]) -> None:
        super().__init__(client, answer)
        self.error: Optional[JsonObject] = answer.get("error")


class Notification(Item):
    """A notification of the server."""

    @property
    def method(self) -> str:
        return cast(str, self.raw["method"])

    @property
    def params(self) -> JsonObject:
        return cast(JsonObject, self.raw.get("params") or {})

    @property
    def frame(self) -> Optional[int]:
        return self.raw.get("frame")


class Progress(Item):
    """How far a request is."""

    @property
    def progress(self) -> float:
        return cast(float, self.raw["progress"])

    @property
    def total(self) -> Optional[float]:
        return self.raw.get("total")

    @property
    def message(self) -> Optional[str]:
        return self.raw.get("message")


class Transcript:
    """What was on the wire. `str()` is the text that failures show."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.text: str = answer.get("text") or ""
        self.frames: List[JsonObject] = answer.get("frames") or []
        self.dropped: int = answer.get("dropped") or 0
        self.faults: List[JsonObject] = answer.get("faults") or []

    def __str__(self) -> str:
        return self.text


class CheckReport:
    """What `mcproof check` found. `str()` is its report as the terminal shows it."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.ok: bool = bool(answer.get("ok"))
        self.findings: List[Item] = [Item(finding) for finding in answer.get("findings") or []]
        self.report: JsonObject = answer.get("report") or {}
        self.text: str = answer.get("text") or ""

    def assert_ok(self) -> "CheckReport":
        __tracebackhide__ = True
        if not self.ok:
            raise AssertionError(self.text.rstrip("\n"))
        return self

    def __str__(self) -> str:
        return self.text


class ClosedServer:
    """How a server ended."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.exit: Optional[JsonObject] = answer.get("exit")
        self.forced: bool = bool(answer.get("forced"))
        self.left_behind: List[Any] = answer.get("left_behind") or []
        self.faults: List[JsonObject] = answer.get("faults") or []


Hashes = Dict[str, str]
