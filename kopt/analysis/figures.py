"""Figures of a study as short texts, with as many digits as say something."""

from __future__ import annotations


def ratio_text(value: float) -> str:
    """Return a speed-up or a ratio with two decimals: `1.26`; from 100 on none: `123`."""
    if value < 0.1:
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 100.0 else f"{value:.0f}"


def chance_text(p: float) -> str:
    """Return a p-value to two digits that count: `0.0007`, `0.31`; below them `<0.0001`."""
    if p < 0.0001:
        return "<0.0001"
    return f"{p:.2f}" if p >= 0.1 else f"{p:.3f}" if p >= 0.01 else f"{p:.4f}"
