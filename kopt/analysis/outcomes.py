"""How searches ended: outcomes, root causes, verdicts, and how speed-ups are spread.

Counts are of searches, those without a correct candidate included. Source: KernelOPT, table 1,
panels A, B and D.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kopt.analysis.trial import Trial

BANDS: tuple[float, ...] = (10.0, 5.0, 2.0, 1.5, 1.1, 1.01)
"""Lower ends of the bands of speed-ups, each up to the one before it."""
OPTIMIZED = "optimized"
BELOW = f"< {BANDS[-1]:g}"
UNSOLVED_BAND = "unsolved"


def outcomes(trials: Iterable[Trial]) -> dict[str, int]:
    """Return outcome to number of searches, the most frequent first."""
    return _counted(trial.outcome for trial in trials)


def root_causes(trials: Iterable[Trial]) -> dict[str, int]:
    """Return why searches are not `optimized` to how many; what follows a colon is left out."""
    causes = (trial.root_cause for trial in trials)
    return _counted(cause.partition(":")[0] for cause in causes if cause is not None)


def verdict_kinds(trials: Iterable[Trial]) -> dict[str, int]:
    """Return kind of verdict to number of candidates, the most frequent first."""
    total: Counter[str] = Counter()
    for trial in trials:
        total.update(trial.verdicts)
    return dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))


def bands(trials: Iterable[Trial]) -> dict[str, int]:
    """Return band of speed-ups to number of searches, every band, the fastest first."""
    counts = dict.fromkeys((*map(_name, range(len(BANDS))), BELOW, UNSOLVED_BAND), 0)
    for trial in trials:
        counts[_band(trial.speedup)] += 1
    return counts


def _band(speedup: float | None) -> str:
    if speedup is None:
        return UNSOLVED_BAND
    return next((_name(place) for place, low in enumerate(BANDS) if speedup >= low), BELOW)


def _name(place: int) -> str:
    low = BANDS[place]
    return f">= {low:g}" if place == 0 else f"[{low:g}, {BANDS[place - 1]:g})"


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))
