"""What an endpoint answers: the choices of one response, whatever its body holds. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kopt.actors.programmers.openai.token_trace import trace_of
from kopt.actors.programmers.openai.tool_calls import ANSWER_TOOL, ToolCall, calls_of
from kopt.actors.programmers.openai.trouble import Trouble, embedded_trouble
from kopt.actors.programmers.openai.words import clean, one_line, server_words
from kopt.ports import TokenTrace

CUT = ("length", "max_tokens")
"""How servers say that an answer ended at the token limit."""
KEPT_CHARACTERS = 2_000
"""Of a body that is no answer, kept for whoever looks into it."""


FaultKind = Literal[
    "refused", "empty", "unreadable", "cut off", "repeated", "no code", "unanswered"
]
"""What is counted: the model would not; it said nothing; the body is no answer; the answer ended
before its code did; it is one that was there before; it holds no module; nobody answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One completion as it came."""

    text: str
    finish: str = ""
    """In the server's word; empty where it said none."""
    fault: str = ""
    """Why its text is not an answer; empty where it may be one."""
    kind: FaultKind | None = None
    """Of the fault."""
    is_cut: bool = False
    """Whether it ended at the token limit, as its server says."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that it asks for, in place of an answer or before one."""
    made: tuple[Mapping[str, str], ...] = ()
    """Calls that were made on the way to it: `name`, `arguments`, `result`."""
    reasoning: str = ""
    """What the model thought beside the text, where the server gives it apart."""
    trace: TokenTrace | None = None
    """Its token ids and log-probabilities, where the response has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """What a server says it has read and written for one request."""

    prompt: int = 0
    cached: int = 0
    """Of the prompt, those that the server knew already."""
    completion: int = 0
    """Of all choices together, those of reasoning included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One response, read."""

    choices: tuple[Choice, ...]
    """At least one: a body that holds none is a choice with that fault."""
    tokens: Tokens | None = None
    """None where the server did not say."""
    is_whole: bool = True
    """Whether the server said all that it had to say."""


def reply_from_body(
    data: bytes, *, cut: bool, num_choices: int, max_answer_bytes: int
) -> Reply | Trouble:
    """Read a whole body; what is wrong with it is a fault, or a trouble the server names itself.

    Args:
        data: the body, or its beginning.
        cut: whether more would have come.
        num_choices: asked for; more are left out.
        max_answer_bytes: of one choice's text.
    """
    if cut:
        return faulty(f"the body was cut off after {len(data):,} bytes", finish="length")
    text = data.decode("utf-8", errors="replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return faulty(_not_json(text), text=text)
    if not isinstance(body, Mapping):
        return faulty("the body is not a JSON object", text=text)
    if body.get("error") and not body.get("choices"):
        return embedded_trouble(body)
    listed = body.get("choices")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        return faulty("the body holds no choices", text=text, tokens=tokens_of(body))
    return Reply(
        choices=tuple(
            _choice(each, body=body, max_answer_bytes=max_answer_bytes)
            for each in in_order(listed)[:num_choices]
        ),
        tokens=tokens_of(body),
    )


def faulty(
    fault: str,
    *,
    finish: str = "error",
    text: str = "",
    tokens: Tokens | None = None,
    kind: FaultKind = "unreadable",
) -> Reply:
    """Return a reply of one choice that is nothing but a fault; of the text, its beginning."""
    choice = Choice(
        text=clean(text[:KEPT_CHARACTERS]), finish=finish, fault=one_line(fault), kind=kind
    )
    return Reply(choices=(choice,), tokens=tokens, is_whole=False)


def _not_json(text: str) -> str:
    start = text.lstrip()[:1]
    if not start:
        return "the body is empty"
    if start in "{[":
        return "the body is broken JSON"
    return f"the body is not JSON but {server_words(text)}"


def in_order(choices: Sequence[Any]) -> list[Any]:
    """Return choices by their `index`; those without one stay where they are."""
    return [
        each
        for _, each in sorted(enumerate(choices), key=lambda pair: choice_index(pair[1], pair[0]))
    ]


def choice_index(choice: object, otherwise: int) -> int:
    """Return a choice's `index`, or the number given where it has none."""
    index = choice.get("index") if isinstance(choice, Mapping) else None
    return index if isinstance(index, int) and not isinstance(index, bool) else otherwise


def _choice(choice: object, *, body: Mapping[str, Any], max_answer_bytes: int) -> Choice:
    if not isinstance(choice, Mapping):
        return Choice(text="", fault="the choice is not a JSON object", kind="unreadable")
    message = choice.get("message")
    if not isinstance(message, Mapping):
        message = {}
    reasoning = text_of(message.get("reasoning_content") or message.get("reasoning"))
    finished = finished_choice(
        text_of(message.get("content")),
        finish=text_of(choice.get("finish_reason")),
        refusal=text_of(message.get("refusal")),
        num_reasoning=len(reasoning),
        calls=calls_of(message.get("tool_calls")),
        max_answer_bytes=max_answer_bytes,
    )
    return replace(
        finished, trace=trace_of(choice, body=body), reasoning=reasoning[:max_answer_bytes]
    )


def finished_choice(
    text: str,
    *,
    finish: str,
    refusal: str,
    num_reasoning: int,
    calls: tuple[ToolCall, ...],
    max_answer_bytes: int,
) -> Choice:
    """Return a choice from its parts, with its fault if it is no answer.

    The arguments of the function that answers are handed in by are its text.

    Args:
        text: the content; empty where there is none.
        finish: in the server's word.
        refusal: what the model says instead of an answer.
        num_reasoning: characters of reasoning beside the content.
        calls: of tools by the model.
        max_answer_bytes: of the text.
    """
    is_cut = finish in CUT
    text = next((call.arguments for call in calls if call.name == ANSWER_TOOL), text)
    calls = tuple(call for call in calls if call.name != ANSWER_TOOL)
    if len(text) > max_answer_bytes or len(text.encode("utf-8")) > max_answer_bytes:
        kept = text.encode("utf-8")[:max_answer_bytes].decode("utf-8", errors="ignore")
        fault = f"cut off after {max_answer_bytes:,} bytes (programmer.max_answer_bytes)"
        return Choice(text=kept, finish="length", fault=fault, kind="cut off")
    if text.strip():
        return Choice(text=text, finish=finish, calls=calls, is_cut=is_cut)
    kind: FaultKind = "empty"
    if refusal:
        fault, kind = f"the model refused: {one_line(refusal)}", "refused"
    elif finish == "content_filter":
        fault, kind = "held back by the server's content filter", "refused"
    elif calls:
        names = ", ".join(call.name for call in calls)
        fault, kind = f"tool calls instead of text: {one_line(names, limit=100)}", "no code"
    elif num_reasoning:
        fault = f"reasoning alone ({num_reasoning:,} characters), no answer"
    else:
        fault = "an empty answer"
    if is_cut and not refusal:
        fault, kind = f"{fault}: cut off at the token limit", "cut off"
    return Choice(
        text="", finish=finish, fault=fault, kind=kind, calls=calls, is_cut=is_cut and not refusal
    )


def text_of(value: object) -> str:
    """Return a text, or the text parts of a list of parts; empty for anything else."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        parts = [part.get("text") for part in value if isinstance(part, Mapping)]
        return "".join(clean(part) for part in parts if isinstance(part, str))
    return ""


def model_names(data: bytes) -> tuple[str, ...]:
    """Return the names in a list of models, in its order; none where it is no such list."""
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        return ()
    listed = body.get("data") if isinstance(body, Mapping) else body
    if not isinstance(listed, list):
        return ()
    names = [each.get("id") for each in listed if isinstance(each, Mapping)]
    return tuple(clean(name) for name in names if isinstance(name, str) and name)


def tokens_of(body: Mapping[str, Any]) -> Tokens | None:
    """Return the `usage` of a body; None where it has none or nothing that is a count."""
    usage = body.get("usage")
    if not isinstance(usage, Mapping):
        return None
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if prompt is None and completion is None:
        return None
    details = usage.get("prompt_tokens_details")
    cached = _count(details, "cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    return Tokens(
        prompt=prompt or 0, cached=min(cached or 0, prompt or 0), completion=completion or 0
    )


def _count(fields: Mapping[str, Any], key: str) -> int | None:
    value = fields.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
