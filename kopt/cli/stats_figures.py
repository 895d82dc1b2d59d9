"""Figures of `kopt stats` as short texts; what is not known is `-`."""

from __future__ import annotations

from kopt.analysis.proportion import Share

UNKNOWN = "-"


def times(value: float | None) -> str:
    """Return a speed-up or a ratio with two decimals: `1.26`; from 100 on none: `123`."""
    if value is None:
        return UNKNOWN
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 100.0 else f"{value:.0f}"


def between(interval: tuple[float, float] | None) -> str:
    """Return an interval: `[1.05, 1.50]`."""
    return UNKNOWN if interval is None else f"[{times(interval[0])}, {times(interval[1])}]"


def chance(p: float | None) -> str:
    """Return a p-value to two digits that count: `0.0007`, `0.31`."""
    if p is None:
        return UNKNOWN
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.3f}" if p >= 0.01 else f"{p:.4f}"


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
