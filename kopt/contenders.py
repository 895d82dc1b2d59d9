"""Which baselines deserve a process of their own, by what is known of their times.

Pure. Compiling a reference costs seconds to minutes, which is lost where it cannot be the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kopt.drift import DRIFT_SHARE
from kopt.reward import RewardBaseline
from kopt.timing import Baseline


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
    rivals_us = [time_us for name, time_us in known_us.items() if name != "max_autotune"]
    found: list[Baseline] = []
    for name in wanted:
        if name not in known_us:
            found.append(name)
        elif name == "max_autotune" or baseline == "eager":
            continue  # reported, never raced
        elif baseline == name or known_us[name] <= (1.0 + DRIFT_SHARE) * min(rivals_us):
            found.append(name)
    return found
