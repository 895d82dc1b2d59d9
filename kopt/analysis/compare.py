"""Arms compared pairwise, on the problems and seeds that both have.

The unit of Wilcoxon's test is a problem: seeds of one are averaged (or the best taken) first, since
they are no independent problems. Differences are of ln(speed-up), as the effect is a ratio. p is
one-sided; each direction is a test of its own in Holm's family, unless a control is named and only
`arm > control` is asked. Fisher's tests have a family of their own.
Source: KernelPro §5.3 and App. C to F; KernelOPT §6.3 for outcome counts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from kopt.analysis.bootstrap import interval_of_geomean
from kopt.analysis.exact_counts import ExactCounts, outcome_test, share_test
from kopt.analysis.holm import holm
from kopt.analysis.outcomes import OPTIMIZED, outcomes
from kopt.analysis.score import Scores, groups, of_problem, scores
from kopt.analysis.signed_rank import SignedRank, signed_rank
from kopt.analysis.trial import OverSeeds, Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One arm against another."""

    first: str
    second: str
    problems: int
    """That both searched with a seed in common."""
    searches: int
    """Of each arm: pairs of problem and seed."""
    unpaired: int
    """Searches of either that the other has no partner for; they count for nothing here."""
    ratio: float | None
    """Geometric mean of first ÷ second over problems; None where nothing is paired."""
    interval: tuple[float, float] | None
    """Its 95 % bootstrap interval; None with fewer than two problems."""
    test: SignedRank | None
    """H1: first > second; None where nothing is paired."""
    p_holm: float | None = None
    p_reverse: float | None = None
    """H1: second > first; None where a control is named, or nothing differs."""
    p_reverse_holm: float | None = None
    first_optimized: int
    """Of `searches`."""
    second_optimized: int
    p_optimized: float | None
    """Fisher's exact test, two-sided, of the two above; None where all or none are."""
    p_optimized_holm: float | None = None
    outcome_counts: ExactCounts | None
    """The same of all outcomes at once."""


def compare_all(
    trials: Iterable[Trial],
    *,
    cap: float | None,
    over_seeds: OverSeeds,
    seed: int,
    control: str | None = None,
    at: int | None = None,
) -> list[Comparison]:
    """Return every pair of arms, in the order in which arms come; corrected over all of them.

    Args:
        trials: on the same terms.
        cap: most that a search counts; None for no cap.
        over_seeds: what a problem's score is of its searches'.
        seed: of the bootstrap.
        control: arm that the others are held against; None compares each with each.
        at: candidates of each search that count for ratio and signed ranks; None: all. Outcomes
            are always of whole searches.
    """
    of_arm: dict[str, list[Trial]] = {}
    for trial in trials:
        of_arm.setdefault(trial.arm, []).append(trial)
    if control is None:
        pairs = list(itertools.combinations(of_arm, 2))
    else:
        pairs = [(arm, control) for arm in of_arm if arm != control and control in of_arm]
    speedup = attrgetter("speedup") if at is None else partial(Trial.best_at, candidates=at)
    score = partial(scores, cap=cap, speedup=speedup)
    found = [
        _compare(of_arm[first], of_arm[second], score=score, over_seeds=over_seeds, seed=seed)
        for first, second in pairs
    ]
    return _corrected(found, both_ways=control is None)


def _compare(
    first: Sequence[Trial],
    second: Sequence[Trial],
    *,
    score: Callable[[Sequence[Trial]], Scores],
    over_seeds: OverSeeds,
    seed: int,
) -> Comparison:
    partners = {_key(trial) for trial in first} & {_key(trial) for trial in second}
    ours = [trial for trial in first if _key(trial) in partners]
    theirs = [trial for trial in second if _key(trial) in partners]
    table, against = score(ours), score(theirs)
    if over_seeds == "mean":
        differences = {
            problem: {seed_: value - against[problem][seed_] for seed_, value in seeds.items()}
            for problem, seeds in table.items()
        }
    else:
        differences = {
            problem: {0: max(seeds.values()) - max(against[problem].values())}
            for problem, seeds in table.items()
        }
    logs = [of_problem(seeds.values(), over_seeds="mean") for seeds in differences.values()]
    log_groups = groups(differences, over_seeds="mean")
    counts, other_counts = outcomes(ours), outcomes(theirs)
    optimized, other_optimized = counts.get(OPTIMIZED, 0), other_counts.get(OPTIMIZED, 0)
    return Comparison(
        first=first[0].arm,
        second=second[0].arm,
        problems=len(logs),
        searches=len(ours),
        unpaired=len(first) + len(second) - len(ours) - len(theirs),
        ratio=math.exp(math.fsum(logs) / len(logs)) if logs else None,
        interval=interval_of_geomean(log_groups, seed=seed),
        test=signed_rank(logs) if logs else None,
        p_reverse=signed_rank([-log for log in logs]).p if logs else None,
        first_optimized=optimized,
        second_optimized=other_optimized,
        p_optimized=share_test(
            (optimized, len(ours) - optimized), (other_optimized, len(theirs) - other_optimized)
        ),
        outcome_counts=outcome_test(counts, other_counts),
    )


def _corrected(found: Sequence[Comparison], *, both_ways: bool) -> list[Comparison]:
    forward = [None if each.test is None else each.test.p for each in found]
    reverse = [each.p_reverse if both_ways else None for each in found]
    one_sided = holm([*forward, *reverse])
    shares = holm([each.p_optimized for each in found])
    return [
        replace(
            each,
            p_holm=one_sided[place],
            p_reverse=reverse[place],
            p_reverse_holm=one_sided[len(found) + place],
            p_optimized_holm=shares[place],
        )
        for place, each in enumerate(found)
    ]


def _key(trial: Trial) -> tuple[str, int]:
    return trial.problem, trial.seed
