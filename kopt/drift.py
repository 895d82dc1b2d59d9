"""Whether a time that was kept still holds: a device's clock, driver or load may have changed.

Pure: numbers in, numbers out.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

DRIFT_SHARE = 0.10
"""What is off by more is measured again."""
CALM_SHARE = 0.05
"""On a calm device the middle half of the times lies within this share of their median."""
FEWEST_TIMES = 4
"""Fewer say nothing of how calm a device is."""


def is_calm(times_us: Sequence[float]) -> bool:
    """Return whether times of the same work, taken one after the other, lie close together."""
    if len(times_us) < FEWEST_TIMES:
        return False
    low_us, middle_us, high_us = statistics.quantiles(times_us, n=4, method="inclusive")
    return high_us - low_us <= CALM_SHARE * middle_us


def has_drifted(times_us: Sequence[float], *, known_us: float) -> bool:
    """Return whether a time that is known does not hold any more.

    Off by more than DRIFT_SHARE: too long, or too short and the device is calm. A busy host only
    adds, so that whatever takes less on it does take less.

    Args:
        times_us: taken now, of the same work; at least one.
        known_us: kept from before, above 0.
    """
    ratio = statistics.median(times_us) / known_us
    if ratio < 1.0 - DRIFT_SHARE:
        return True
    return ratio > 1.0 + DRIFT_SHARE and is_calm(times_us)
