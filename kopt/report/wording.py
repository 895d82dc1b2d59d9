"""Figures as a reader meets them: with their unit, or in words where there is none."""

from __future__ import annotations

from kopt.analysis.figures import chance_text, ratio_text
from kopt.analysis.proportion import Share

UNKNOWN = "–"
TIMES = "×"


def times(value: float | None) -> str:
    """Return a speed-up or a ratio: `1.26×`."""
    return UNKNOWN if value is None else f"{ratio_text(value)}{TIMES}"


def between(interval: tuple[float | None, float | None] | None) -> str:
    """Return an interval of speed-ups: `1.05 to 1.50`; empty where there is none."""
    if interval is None or interval[0] is None or interval[1] is None:
        return ""
    return f"{ratio_text(interval[0])} to {ratio_text(interval[1])}"


def microseconds(value: float | None) -> str:
    """Return a time of one call: `12.3 µs`, `4.56 ms`."""
    if value is None:
        return UNKNOWN
    if value >= 10_000.0:
        return f"{value / 1000.0:.4g} ms"
    return f"{value:.3g} µs" if value < 100.0 else f"{value:.0f} µs"


def seconds(value: float | None) -> str:
    """Return a span: `12 s`, `3.4 min`, `5.6 h`."""
    if value is None:
        return UNKNOWN
    if value < 90.0:
        return f"{value:.3g} s"
    return f"{value / 60.0:.1f} min" if value < 5400.0 else f"{value / 3600.0:.1f} h"


def percent(value: float | None) -> str:
    """Return a share: `38 %`."""
    return UNKNOWN if value is None else f"{100.0 * value:.3g} %"


def share(value: Share) -> str:
    """Return a share with its interval: `38 % (26 to 52)`."""
    return f"{100 * value.share:.0f} % ({100 * value.low:.0f} to {100 * value.high:.0f})"


def chance(p: float | None) -> str:
    """Return a p-value to two digits that count."""
    return UNKNOWN if p is None else chance_text(p)


def number(value: float | None) -> str:
    """Return a count with its thousands apart, or a figure to three digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value == int(value) or value >= 1000.0 else f"{value:.3g}"


def usd(value: float | None) -> str:
    """Return an amount of money."""
    return UNKNOWN if value is None else f"${value:,.2f}"


def counted(value: int, one: str, several: str = "") -> str:
    """Return a number with its noun: `1 search`, `3 searches`."""
    return f"{value:,} {one if value == 1 else several or one + 's'}"
