"""Holm's correction: p-values of several tests, such that one false find is as rare as for one.

Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
"""

from __future__ import annotations

from collections.abc import Sequence


def holm(values: Sequence[float | None]) -> list[float | None]:
    """Return the corrected p of each, in the order given.

    The k-th least of m is multiplied by m + 1 - k; none is less than one before it, none above 1.

    Args:
        values: raw p; None where there was no test, which counts for nothing and stays None.
    """
    tested = sorted((p, place) for place, p in enumerate(values) if p is not None)
    corrected: list[float | None] = [None] * len(values)
    floor = 0.0
    for before, (p, place) in enumerate(tested):
        floor = max(floor, min(1.0, p * (len(tested) - before)))
        corrected[place] = floor
    return corrected
