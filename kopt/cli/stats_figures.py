"""Figures of `kopt stats` as short texts; what is not known is `-`."""

from __future__ import annotations

from kopt.analysis.figures import chance_text, ratio_text
from kopt.analysis.proportion import Share

UNKNOWN = "-"


def times(value: float | None) -> str:
    """Return a speed-up or a ratio with two decimals: `1.26`; from 100 on none: `123`."""
    return UNKNOWN if value is None else ratio_text(value)


def between(interval: tuple[float, float] | None) -> str:
    """Return an interval: `[1.05, 1.50]`."""
    return UNKNOWN if interval is None else f"[{times(interval[0])}, {times(interval[1])}]"


def chance(p: float | None) -> str:
    """Return a p-value to two digits that count: `0.0007`, `0.31`."""
    return UNKNOWN if p is None else chance_text(p)


def percent(share: float) -> str:
    """Return a share in per cent: `38%`."""
    return f"{100.0 * share:.0f}%"


def percent_between(share: Share) -> str:
    """Return a share and its interval in per cent: `38 [26,52]`."""
    return f"{100 * share.share:.0f} [{100 * share.low:.0f},{100 * share.high:.0f}]"


def letter(place: int) -> str:
    """Return the letter of an arm: A … Z, then A1 … Z1, ….

    Args:
        place: of the arm, from 0.
    """
    turn, within = divmod(place, 26)
    return chr(ord("A") + within) + (str(turn) if turn else "")
