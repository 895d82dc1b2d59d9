"""Tool calls of a model: read within bounds, whole or as they are streamed. Untrusted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopt.actors.programmers.openai.words import clean

MAX_CALLS = 16
"""Of one message; more are left out."""
MAX_ARGUMENTS = 2_000
"""Characters of one call's arguments."""
MAX_NAME = 100
ANSWER_TOOL = "submit_kernel"
"""The function whose arguments are the answer itself (programmer.structured=tool)."""
MAX_ANSWER = 1_000_000
"""Characters of its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call."""

    name: str
    """Of the function; `?` where it has none."""
    call_id: str = ""
    arguments: str = ""
    """As the model wrote them: JSON, or what it takes for it."""

    def to_json(self) -> dict[str, Any]:
        """Return it in the form of a message's `tool_calls`."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.call_id, "type": "function", "function": function}


def calls_of(value: object) -> tuple[ToolCall, ...]:
    """Return the calls of a message's `tool_calls`."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return ()
    gathered = GatheredCalls()
    for number, each in enumerate(value[:MAX_CALLS]):
        if isinstance(each, Mapping):
            gathered.feed([{**each, "index": number}])
        else:
            gathered.feed([{"index": number}])
    return gathered.calls()


@dataclass(slots=True)
class _Growing:
    name: str = ""
    call_id: str = ""
    arguments: str = ""


@dataclass(slots=True)
class GatheredCalls:
    """Calls that come in pieces, told apart by their `index`."""

    size: int = 0
    """Characters of all arguments."""
    _growing: dict[int, _Growing] = field(default_factory=dict)

    def feed(self, value: object) -> None:
        """Take the `tool_calls` of one delta."""
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return
        for number, piece in enumerate(value):
            if not isinstance(piece, Mapping):
                continue
            index = piece.get("index")
            index = index if isinstance(index, int) and not isinstance(index, bool) else number
            if index not in self._growing and len(self._growing) >= MAX_CALLS:
                continue
            growing = self._growing.setdefault(index, _Growing())
            growing.call_id = growing.call_id or _text(piece.get("id"), limit=MAX_NAME)
            function = piece.get("function")
            if isinstance(function, Mapping):
                growing.name = growing.name or _text(function.get("name"), limit=MAX_NAME)
                most = MAX_ANSWER if growing.name == ANSWER_TOOL else MAX_ARGUMENTS
                room = most - len(growing.arguments)
                more = _text(function.get("arguments"), limit=room)
                growing.arguments += more
                self.size += len(more)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return what has come, in the order of the indices."""
        return tuple(
            ToolCall(
                name=each.name or "?",
                call_id=each.call_id or f"call-{index}",
                arguments=each.arguments,
            )
            for index, each in sorted(self._growing.items())
        )


def _text(value: object, *, limit: int) -> str:
    return clean(value[: max(limit, 0)]) if isinstance(value, str) else ""
