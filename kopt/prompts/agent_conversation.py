"""A conversation within its bound: its task and its latest words stay, what lies between goes."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.ports import Message
from kopt.prompts.tokens import prompt_tokens


def said(messages: Sequence[Message], *, answer: str, then: str) -> tuple[Message, ...]:
    """Return a conversation that goes on: what was answered, and what is said to that."""
    return (*messages, Message("assistant", answer), Message("user", then))


def bounded(messages: Sequence[Message], *, tokens: int) -> tuple[Message, ...]:
    """Return a conversation of about so many tokens at most.

    The system message and the task always stay, and so do the latest answer and what was said to
    it. Earlier answers go with what was said to them, the oldest first.

    Args:
        messages: system, user, then answers and replies in turn.
        tokens: bound, as estimated.
    """
    head, rest = list(messages[:2]), list(messages[2:])
    while len(rest) > 2 and prompt_tokens([*head, *rest]) > tokens:
        del rest[:2]
    return (*head, *rest)
