"""What followed findings: how often each tool fired and was acted on; gains by class of bottleneck.

A fire is a turn (an expansion whose author answered) with a finding of the tool about the parent; a
hit is a fire from which a correct candidate came that is more than HIT_GAIN times as fast as the
parent. It is no proof of cause: several tools fire in one turn, and each is credited.
Source: KernelPro, tables 9 and 17.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kopt.analysis.proportion import Share, wilson
from kopt.analysis.score import geometric_mean
from kopt.analysis.trial import Trial, Turn

HIT_GAIN = 1.5
"""A turn is a hit above this gain over the parent."""
UNKNOWN_CLASS = "not profiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """What came of a kind of turn."""

    name: str
    """Of the tool, or of the class of bottleneck."""
    turns: int
    """Fires of the tool; turns on parents of the class."""
    problems: int
    """With such a turn."""
    hits: int
    rate: Share
    """hits ÷ turns, with Wilson's 95 % interval; turns are taken as independent."""
    mean_gain: float | None
    """Over problems, the mean of the largest gain of one turn; None where no turn gave a correct
    candidate."""
    geomean_gain: float | None
    """The same by geometric mean."""
    best_gain: float | None


def tool_figures(trials: Iterable[Trial]) -> list[TurnFigures]:
    """Return the figures of each tool that fired, the most frequent first."""
    return _figures(trials, names=lambda turn: turn.tools)


def class_figures(trials: Iterable[Trial]) -> list[TurnFigures]:
    """Return the figures of each class of bottleneck of parents, the most frequent first."""
    return _figures(trials, names=lambda turn: (turn.bottleneck or UNKNOWN_CLASS,))


def _figures(
    trials: Iterable[Trial], *, names: Callable[[Turn], Sequence[str]]
) -> list[TurnFigures]:
    gains: dict[str, dict[str, list[float | None]]] = {}
    for trial in trials:
        for turn in trial.turns:
            for name in names(turn):
                gains.setdefault(name, {}).setdefault(trial.problem, []).append(turn.gain)
    figures = [_of(name, list(of_problem.values())) for name, of_problem in gains.items()]
    return sorted(figures, key=lambda each: (-each.turns, each.name))


def _of(name: str, by_problem: Sequence[Sequence[float | None]]) -> TurnFigures:
    turns = sum(map(len, by_problem))
    known = [[gain for gain in gains if gain is not None] for gains in by_problem]
    hits = sum(gain > HIT_GAIN for gains in known for gain in gains)
    largest = [max(gains) for gains in known if gains]
    low, high = wilson(hits, num=turns)
    return TurnFigures(
        name=name,
        turns=turns,
        problems=len(by_problem),
        hits=hits,
        rate=Share(share=hits / turns, low=low, high=high, num=turns),
        mean_gain=sum(largest) / len(largest) if largest else None,
        geomean_gain=_geomean(largest),
        best_gain=max(largest, default=None),
    )


def _geomean(values: Sequence[float]) -> float | None:
    return geometric_mean([math.log(value) for value in values])
