"""Which baselines deserve a process of their own, and which a race, by what is known of them.

Pure. Compiling a reference costs seconds to minutes, which is lost where it cannot be the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kopt.drift import DRIFT_SHARE
from kopt.reward import RewardBaseline
from kopt.timing import GIVEN, Baseline

NOT_RACED_UNASKED: tuple[Baseline, ...] = ("max_autotune", GIVEN)
"""Reported, and never what speed-ups are against unless a setting names it."""


def contenders(
    wanted: Sequence[Baseline], *, known_us: Mapping[Baseline, float], baseline: RewardBaseline
) -> list[Baseline]:
    """Return those whose time is unknown, or that may be what speed-ups are against.

    A time that was kept holds to within DRIFT_SHARE: one that exceeds the best by no more may win.

    Args:
        wanted: those to be reported, eager (which needs nothing) left out.
        known_us: times that were kept, eager's among them, or none at all.
        baseline: what speed-ups are against by configuration.
    """
    rivals_us = [each_us for name, each_us in known_us.items() if name not in NOT_RACED_UNASKED]
    found: list[Baseline] = []
    for name in wanted:
        if name not in known_us or baseline == name:
            found.append(name)
        elif name in NOT_RACED_UNASKED or baseline in ("eager", GIVEN):
            continue  # reported, never raced
        elif known_us[name] <= (1.0 + DRIFT_SHARE) * min(rivals_us):
            found.append(name)
    return found


def rivals(best: Baseline, *, seen_us: Mapping[Baseline, tuple[float, float]]) -> list[Baseline]:
    """Return those that may be the best as well: each took no longer once than the best once did.

    Args:
        best: by its median.
        seen_us: least and greatest time of each that can be raced, measured beside each other.
    """
    _, most_us = seen_us[best]
    return [
        name
        for name, (least_us, _) in seen_us.items()
        if name not in (best, *NOT_RACED_UNASKED) and least_us <= most_us
    ]
