"""The other baselines: what the best candidates reach over eager, compile and given kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kopt.analysis.arm_figures import CappedMean, capped_means
from kopt.analysis.trial import OverSeeds, Trial
from kopt.report.search_rows import SearchRow

Over = Literal["eager", "compile", "given"]
COLUMNS: dict[Over, Literal["speedup_eager", "speedup_compile", "speedup_given"]] = {
    "eager": "speedup_eager",
    "compile": "speedup_compile",
    "given": "speedup_given",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OverBaseline:
    """One arm over one baseline."""

    over: Over
    mean: CappedMean | None
    """Uncapped, over problems, unsolved = 1; None where the baseline was measured nowhere."""
    searches: int
    """That count."""
    left_out: int
    """Solved searches whose baseline was not measured."""


def shown_baselines(rows: Sequence[SearchRow]) -> list[Over]:
    """Return the baselines that a table of these rows has; `given` only where problems have any."""
    has_given = any(each.row["speedup_given"] is not None for each in rows)
    return [over for over in COLUMNS if over != "given" or has_given]


def over_baselines(
    rows: Sequence[SearchRow], *, shown: Sequence[Over], over_seeds: OverSeeds, seed: int
) -> list[OverBaseline]:
    """Return the figures of one arm over each baseline.

    The time of the baseline divided by the candidate's, as results.parquet has it: the two were not
    interleaved pair by pair, so the recorded speed-up is the surer one.

    Args:
        rows: of one arm on the same terms, without degenerate problems.
        shown: which baselines, of `shown_baselines`.
        over_seeds: what a problem's score is of its searches'.
        seed: of the bootstrap.
    """
    return [_over(rows, over, over_seeds=over_seeds, seed=seed) for over in shown]


def _over(
    rows: Sequence[SearchRow], over: Over, *, over_seeds: OverSeeds, seed: int
) -> OverBaseline:
    counted: list[Trial] = []
    left_out = measured = 0
    for each in rows:
        if each.trial is None:
            continue
        value = each.row[COLUMNS[over]]
        if each.trial.speedup is not None and value is None:
            left_out += 1
            continue
        measured += value is not None
        counted.append(replace(each.trial, speedup=value))
    means = capped_means(counted, caps=(None,), over_seeds=over_seeds, seed=seed)
    return OverBaseline(
        over=over,
        mean=means[0] if means and measured else None,
        searches=len(counted),
        left_out=left_out,
    )
