"""best@N: what arms had reached after N candidates, by the order of verdicts in the journal.

Candidates of a search are not exchangeable (later ones build on earlier ones), so this is the best
so far in the order they came, and not the unbiased estimator over subsets that pass@k has. What
leads is the candidate of highest rank (low end of its interval), as in all results, so that the
curve ends at the headline; its own speed-up may then be lower than that of a less sure one before.
A search that ended before N keeps what it had. Source: KernelPro, table 20.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from kopt.analysis.score import geomean_of, scores
from kopt.analysis.trial import OverSeeds, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAt:
    """One point of the curve."""

    candidates: int
    """N: verdicts of each search."""
    geomean: float
    """Geometric mean over problems, unsolved so far = 1."""
    running: int
    """Searches with at least N candidates."""


def grid(longest: int) -> list[int]:
    """Return 1, 2, 5, 10, 20, 50, … up to the longest search, which is the last; [] of none."""
    found, power = [], 1
    while power <= longest:
        found += [step * power for step in (1, 2, 5) if step * power < longest]
        power *= 10
    return [*found, longest] if longest >= 1 else []


def best_at(
    trials: Iterable[Trial], *, steps: Iterable[int], cap: float | None, over_seeds: OverSeeds
) -> list[BestAt]:
    """Return the curve of one arm; [] where it has no trial.

    Args:
        trials: of one arm.
        steps: values of N, each >= 1.
        cap: most that a search counts; None for no cap.
        over_seeds: what a problem's score is of its searches'.
    """
    listed = list(trials)
    curve = []
    for step in steps:
        table = scores(listed, cap=cap, speedup=partial(Trial.best_at, candidates=step))
        geomean = geomean_of(table, over_seeds=over_seeds)
        if geomean is not None:
            running = sum(trial.candidates >= step for trial in listed)
            curve.append(BestAt(candidates=step, geomean=geomean, running=running))
    return curve
