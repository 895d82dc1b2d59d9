"""Answers as they are written: server-sent events, gathered choice by choice, within bounds.

An endpoint that never stops costs no more memory than the bounds: a choice over its limit is left
where it is, a line over its limit ends the reading, and so does more in all than any answer needs.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from kopt.actors.programmers.openai.reply import (
    Choice,
    Reply,
    Tokens,
    choice_index,
    faulty,
    finished_choice,
    text_of,
    tokens_of,
)
from kopt.actors.programmers.openai.token_trace import GatheredTrace, integers_of
from kopt.actors.programmers.openai.tool_calls import GatheredCalls
from kopt.actors.programmers.openai.trouble import Trouble, embedded_trouble
from kopt.actors.programmers.openai.words import MAX_WORDS

DONE = "[DONE]"
BYTES_OF_A_LINE = 8
"""A line may be so many times as long as an answer: escapes, and reasoning beside it."""
BYTES_IN_ALL = 200
"""So many times the answers' bytes come with them at most: each token has a JSON object round it,
and reasoning is longer than what it leads to."""


@dataclass(slots=True)
class _Growing:
    """A choice that is being written."""

    text: list[str] = field(default_factory=list)
    size: int = 0
    """UTF-8 bytes of `text`."""
    refusal: str = ""
    num_reasoning: int = 0
    reasoning: list[str] = field(default_factory=list)
    """As far as an answer may be long."""
    finish: str = ""
    calls: GatheredCalls = field(default_factory=GatheredCalls)
    trace: GatheredTrace = field(default_factory=GatheredTrace)

    def is_over(self, max_bytes: int) -> bool:
        """Whether it has more than it may, an answer in a call's arguments included."""
        return self.size + self.calls.size > max_bytes


class StreamReader:
    """Takes the data of events, one after another, and says when no more is needed."""

    def __init__(self, *, num_choices: int, max_answer_bytes: int) -> None:
        """Take the bounds; see `reply_from_body`."""
        self._num_choices = num_choices
        self._max_answer_bytes = max_answer_bytes
        self._growing: dict[int, _Growing] = {}
        self._tokens: Tokens | None = None
        self._prompt_token_ids: list[int] = []
        self._complete = False
        self.trouble: Trouble | None = None
        """What the server said went wrong on its side, if it did."""
        self._fault = ""

    def feed(self, data: str) -> bool:
        """Take an event's data; False once nothing that comes could matter."""
        if data == DONE:
            self._complete = True
            return False
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            self._fault = "an event of the stream is broken JSON"
            return False
        if not isinstance(body, Mapping):
            self._fault = "an event of the stream is not a JSON object"
            return False
        if body.get("error") and not body.get("choices"):
            self.trouble = embedded_trouble(body)
            return False
        self._tokens = tokens_of(body) or self._tokens
        self._prompt_token_ids = integers_of(body.get("prompt_token_ids")) or self._prompt_token_ids
        choices = body.get("choices")
        for number, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, Mapping):
                self._grow(choice, choice_index(choice, number))
        return not self._is_stuck()

    def stop(self, fault: str) -> None:
        """End the reading; choices that are not finished have that fault."""
        self._fault = fault

    def _grow(self, choice: Mapping[str, Any], index: int) -> None:
        if not 0 <= index < self._num_choices:
            return
        growing = self._growing.setdefault(index, _Growing())
        growing.finish = text_of(choice.get("finish_reason")) or growing.finish
        delta = choice.get("delta")
        if not isinstance(delta, Mapping) or growing.is_over(self._max_answer_bytes):
            return
        growing.trace.feed(choice)
        piece = text_of(delta.get("content"))
        if piece:
            growing.text.append(piece)
            growing.size += len(piece.encode("utf-8"))
        thought = text_of(delta.get("reasoning_content") or delta.get("reasoning"))
        if thought and growing.num_reasoning < self._max_answer_bytes:
            growing.reasoning.append(thought)
        growing.num_reasoning += len(thought)
        if len(growing.refusal) < MAX_WORDS:
            growing.refusal += text_of(delta.get("refusal"))
        growing.calls.feed(delta.get("tool_calls"))

    def _is_stuck(self) -> bool:
        """Whether every choice is finished or over its limit, and one of them is the latter."""
        choices = self._growing.values()
        over = [each.is_over(self._max_answer_bytes) for each in choices]
        return (
            len(over) == self._num_choices
            and any(over)
            and all(map(lambda each, is_over: is_over or bool(each.finish), choices, over))
        )

    def reply(self) -> Reply:
        """Return what has come."""
        if not self._growing:
            ended = "the stream holds no choices" if self._complete else "the stream ended early"
            return faulty(self._fault or ended, tokens=self._tokens)
        return Reply(
            choices=tuple(self._finished(self._growing[key]) for key in sorted(self._growing)),
            tokens=self._tokens,
            is_whole=self._complete,
        )

    def _finished(self, growing: _Growing) -> Choice:
        whole = growing.finish or self._complete or growing.is_over(self._max_answer_bytes)
        if not whole:
            fault = self._fault or "the stream ended before the answer did"
            return Choice(
                text="".join(growing.text), finish="length", fault=fault, kind="unreadable"
            )
        finished = finished_choice(
            "".join(growing.text),
            finish=growing.finish,
            refusal=growing.refusal,
            num_reasoning=growing.num_reasoning,
            calls=growing.calls.calls(),
            max_answer_bytes=self._max_answer_bytes,
        )
        return replace(
            finished,
            trace=growing.trace.trace(self._prompt_token_ids),
            reasoning="".join(growing.reasoning)[: self._max_answer_bytes],
        )


async def read_stream(
    chunks: AsyncIterator[bytes], *, num_choices: int, max_answer_bytes: int
) -> Reply | Trouble:
    """Read server-sent events to their end, or to where nothing that follows could matter.

    Args:
        chunks: bytes of the body as they come.
        num_choices: asked for; more are left out.
        max_answer_bytes: of one choice's text.
    """
    reader = StreamReader(num_choices=num_choices, max_answer_bytes=max_answer_bytes)
    bounds = max_answer_bytes * num_choices
    events = _events(chunks, line_bytes=BYTES_OF_A_LINE * bounds, all_bytes=BYTES_IN_ALL * bounds)
    async with aclosing(events):
        async for data in events:
            if data is None:
                reader.stop("cut off: an endless stream")
                break
            if not reader.feed(data):
                break
    return reader.trouble or reader.reply()


async def _events(
    chunks: AsyncIterator[bytes], *, line_bytes: int, all_bytes: int
) -> AsyncGenerator[str | None, None]:
    """Yield the data of each event; None, and then no more, once a bound is passed.

    Source: WHATWG HTML, server-sent events; a lone CR ends no line here, and fields other than
    `data` say nothing that is needed.
    """
    rest, data, pending, total = bytearray(), list[str](), 0, 0
    async for chunk in chunks:
        total += len(chunk)
        rest += chunk
        if b"\n" in chunk:
            *lines, tail = rest.split(b"\n")
            rest = bytearray(tail)
            for line in lines:
                text = line.rstrip(b"\r").decode("utf-8", errors="replace")
                if text.startswith("data:"):
                    data.append(text[5:].removeprefix(" "))
                    pending += len(line)
                elif not text and data:
                    yield "\n".join(data)
                    data, pending = [], 0
        if total > all_bytes or len(rest) + pending > line_bytes:
            yield None
            return
    if data:
        yield "\n".join(data)
