"""Token ids and log-probabilities of a response, where it was asked for them. Untrusted. Pure.

Log-probabilities are OpenAI's (`choices[].logprobs.content[].logprob`); the ids are vLLM's
(`prompt_token_ids` of the response, `token_ids` of each choice), whole or in pieces of a stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from kopt.ports import TokenTrace

MAX_TOKENS = 2_000_000
"""Of a prompt or a completion; more are left out."""


@dataclass(slots=True)
class GatheredTrace:
    """The trace of one choice, as it comes."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def feed(self, choice: Mapping[str, object]) -> None:
        """Take a choice of a response, or one of a stream's pieces."""
        ids = integers_of(choice.get("token_ids"))
        self.token_ids += ids[: MAX_TOKENS - len(self.token_ids)]
        given = choice.get("logprobs")
        content = given.get("content") if isinstance(given, Mapping) else None
        for each in _items(content):
            value = each.get("logprob") if isinstance(each, Mapping) else None
            if len(self.logprobs) < MAX_TOKENS:
                self.logprobs.append(float(value) if _is_number(value) else math.nan)

    def trace(self, prompt_token_ids: Sequence[int]) -> TokenTrace | None:
        """Return what has come; None where there is nothing of it."""
        if not (self.token_ids or self.logprobs):
            return None
        return TokenTrace(
            prompt_token_ids=tuple(prompt_token_ids),
            token_ids=tuple(self.token_ids),
            logprobs=tuple(None if math.isnan(value) else value for value in self.logprobs),
        )


def trace_of(choice: Mapping[str, object], *, body: Mapping[str, object]) -> TokenTrace | None:
    """Return the trace of a choice of a whole response; None where it has none."""
    gathered = GatheredTrace()
    gathered.feed(choice)
    return gathered.trace(integers_of(body.get("prompt_token_ids")))


def integers_of(value: object) -> list[int]:
    """Return a list of token ids; empty for anything else."""
    ids = list(_items(value))
    if len(ids) > MAX_TOKENS or not all(isinstance(each, int) and each >= 0 for each in ids):
        return []
    return [int(each) for each in ids if isinstance(each, int)]


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
