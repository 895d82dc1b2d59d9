"""What a programmer answers: its words as they came, what they cost, the candidates in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kopt.candidate import Candidate


class Message(NamedTuple):
    """One message of a prompt."""

    role: str
    """`system`, `user` or `assistant`."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer cost."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrace:
    """A completion token by token, for learning from it."""

    prompt_token_ids: tuple[int, ...] = ()
    """Of the prompt as the model read it; empty where the server does not give them."""
    token_ids: tuple[int, ...] = ()
    """Of the completion, the one that ended it included; empty likewise."""
    logprobs: tuple[float | None, ...] = ()
    """Of each token of the completion; None for one without a finite one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a model or a person, as it came. Untrusted text."""

    text: str
    finish: str = ""
    """Why it ended, in the server's word: `stop`, `length`, `content_filter`, …; empty where
    nobody said."""
    fault: str = ""
    """Why it holds no candidate, in one line; empty where it holds one."""
    usage: Usage = Usage()
    """Tokens of a prompt that several completions share are counted with the first."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """Tools that were called on the way, in order: `name`, `arguments`, `result`, as text."""
    reasoning: str = ""
    """What the model thought beside its words, where the server gives it apart from them."""
    trace: TokenTrace | None = None
    """Of the last turn where tools were called; None where it was not asked for or not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a programmer wrote: at most N candidates, in the order of their slots."""

    candidates: tuple[Candidate, ...]
    exhausted: bool = False
    """It has nothing more for this node, ever: the search closes the node."""
    messages: tuple[Message, ...] = ()
    """The prompt as sent; empty where nobody was asked in words."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Model, temperature, seed, …: plain JSON values, as sent."""
    completions: tuple[Completion, ...] = ()
    """What came back, those without a candidate included; empty where nobody was asked."""
    note: str = ""
    """One line for the journal, such as why there are fewer than N."""
