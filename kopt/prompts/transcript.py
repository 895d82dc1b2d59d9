"""Messages as one text for people: golden files, `kopt prompt`, a mailbox."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.ports import Message


def transcript(messages: Sequence[Message]) -> str:
    """Return the messages one below the other, each under a line with its role."""
    return "\n".join(f"=== {role} ===\n\n{text.rstrip()}\n" for role, text in messages)
