"""The table of searches: what each reached against its baselines, and whether that is a win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.analysis.study import Study
from kopt.analysis.trial import Trial
from kopt.data.results import ResultRow, result_rows
from kopt.report.reading import ReportedRun

WIN = "optimized"
"""The one outcome that is a win: above 1.01, and its interval above 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRow:
    """One search."""

    run: str
    search: str
    tree: int
    """Place of its tree in the report."""
    arm: str
    """As the study tells arms apart; the run's own name of it where the search is not counted."""
    row: ResultRow
    trial: Trial | None
    """As the study counts it; None where it is left out (it has not ended, or has no speed-up)."""
    stratum: int | None
    """Place of its set of terms in the study."""

    @property
    def is_win(self) -> bool:
        """Whether its best candidate is surely faster than the baseline, on a sound problem."""
        return self.row["outcome"] == WIN and not self.is_degenerate

    @property
    def is_degenerate(self) -> bool:
        """Whether a speed-up means little here: by its own verdicts, or the study's word."""
        return self.row["degenerate"] or (self.trial is not None and self.trial.degenerate)

    @property
    def baseline(self) -> str:
        """What `speedup` is over."""
        return "" if self.trial is None else self.trial.terms.baseline


def search_rows(runs: Sequence[ReportedRun], study: Study) -> list[SearchRow]:
    """Return a row for each search, in the order of the report's trees."""
    strata = {stratum.terms: place for place, stratum in enumerate(study.strata)}
    trials = {(trial.run, trial.search): trial for trial in study.trials}
    rows: list[SearchRow] = []
    for run in runs:
        for name, row in zip(run.state.searches, result_rows(run.state), strict=True):
            trial = trials.get((run.label, name))
            rows.append(
                SearchRow(
                    run=run.label,
                    search=name,
                    tree=len(rows),
                    arm=row["arm"] if trial is None else trial.arm,
                    row=row,
                    trial=trial,
                    stratum=None if trial is None else strata[trial.terms],
                )
            )
    return rows
