"""What the scripted server may do with a request, and scripts that choose it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal[
    "answer",
    "status",
    "drop",
    "drop_within",
    "html",
    "wrong_json",
    "truncated",
    "empty_body",
    "no_choices",
    "error_in_body",
    "null_content",
    "refusal",
    "content_filter",
    "tool_calls",
    "reasoning",
    "cut",
    "endless",
    "drip",
    "hang",
]
"""`answer`: as a model would. `status`: an error. `drop`, `drop_within`: the connection is gone
before a body, or in the middle of it. `html`, `wrong_json`, `truncated`, `empty_body`,
`no_choices`, `error_in_body`: status 200 with such a body (in a stream: such an event). From
`null_content` on: choices of that kind, `cut` ending in half a code block at the token limit.
`endless`: text without end. `drip`: an answer in small pieces, `delay_s` between them. `hang`:
nothing, ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request, as a script sees it."""

    body: Mapping[str, Any]
    number: int
    """How many requests came before."""
    attempt: int
    """How many of them had the same body: 0 the first time, 1 for its first retry."""
    rng: random.Random
    """Seeded by (the server's seed, body, attempt)."""

    @property
    def prompt(self) -> str:
        """All messages, joined."""
        return "\n\n".join(
            message["content"]
            for message in self.body["messages"]
            if isinstance(message.get("content"), str)
        )

    @property
    def num_choices(self) -> int:
        """Completions asked for."""
        return int(self.body.get("n") or 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What is done with one request."""

    kind: Kind = "answer"
    delay_s: float = 0.0
    """Before anything is sent; for `drip` between pieces."""
    texts: Sequence[str] | None = None
    """One for each choice, the last one for all that follow; None asks the server's author."""
    status: int = 503
    """For `status`."""
    error: Mapping[str, Any] | None = None
    """For `status` and `error_in_body`: the object under `error`; None for a plain one."""
    headers: Mapping[str, str] | None = None
    """Sent as well, such as Retry-After."""
    calls: Sequence[str | tuple[str, str]] = ("run",)
    """For `tool_calls`: names of the functions that each choice calls, with their arguments as the
    model writes them; a name alone is called without any."""
    num_choices: int | None = None
    """Choices given instead of those asked for."""
    usage: bool = True
    """Whether tokens are reported."""
    knows_forms: bool = True
    """Whether an `answer` is in the form that the request asks for (`response_format`, a named
    function); otherwise those fields are passed over. Limits of tokens are kept to by all."""


Script = Callable[[Asked], Behaviour]
"""Chooses what to do with a request."""


def always_answer(asked: Asked) -> Behaviour:
    """Answer each request at once."""
    del asked
    return Behaviour()


def in_turn(*behaviours: Behaviour) -> Script:
    """Return a script that does one after another; the last one for all that follow."""

    def script(asked: Asked) -> Behaviour:
        return behaviours[min(asked.number, len(behaviours) - 1)]

    return script


def refusing(*fields: str) -> Script:
    """Return a script that answers, but for requests with a field that it does not know."""

    def script(asked: Asked) -> Behaviour:
        for field in fields:
            if field in asked.body:
                error = {
                    "message": f"Unrecognized request argument supplied: {field}",
                    "type": "invalid_request_error",
                    "param": field,
                    "code": None,
                }
                return Behaviour(kind="status", status=400, error=error)
        return Behaviour()

    return script
