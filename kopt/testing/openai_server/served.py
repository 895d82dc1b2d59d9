"""What a server has served: one record a request, so that a client's count can be compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What became of one request for completions."""

    kind: str
    """The behaviour's kind; `refused` for a wrong key, an unknown model, a prompt too long."""
    status: int
    """HTTP status; that of a refusal is not told apart here."""
    attempt: int
    """0 the first time that its body was asked, 1 for its first retry."""
    seed: int | None
    """Of the request."""
    held_s: float
    """From its headers' arrival to the last byte of the response."""
    finished: bool
    """Whether a response was sent whole (an error's, too)."""

    @property
    def is_answer(self) -> bool:
        """Whether a client has a response of status 200 to it, faulty or not."""
        return self.finished and self.kind not in ("refused", "status", "drop", "drop_within")

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values; `Served(**values)` gives it back."""
        return asdict(self)
