"""Meltdown: whether the latest plans still differ from one another.

Source: KernelOPT §4.2: "a meltdown detector that triggers diversity enforcement when recent
directions (up to the last six) collapse to <= 2 unique approaches, identified by normalized string
matching" (kopt.direction). It asks for diversity then, not for an end; what a search does about it
is the policy's to say (beam.py).
"""

from __future__ import annotations

from collections.abc import Sequence


def has_collapsed(directions: Sequence[str], *, window: int, most: int) -> bool:
    """Return whether the latest directions hold too few approaches.

    Fewer than `most` + 1 directions never do: they could not hold more.

    Args:
        directions: normalised, the latest last.
        window: how many of the latest count, >= 1.
        most: as many approaches as are too few, >= 1.
    """
    recent = directions[-window:]
    return len(recent) > most and len(set(recent)) <= most
