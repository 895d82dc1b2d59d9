"""A report: runs and their statistics, put together as what the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kopt.analysis.arm_figures import ArmFigures
from kopt.analysis.compare import Comparison
from kopt.analysis.study import Asked, Stratum, Study
from kopt.analysis.trial import Terms
from kopt.report.baselines import OverBaseline, over_baselines, shown_baselines
from kopt.report.charts import Chart
from kopt.report.contents import Contents, contents
from kopt.report.cost_charts import cost_charts
from kopt.report.count_charts import comparison_chart, count_charts
from kopt.report.headlines import headlines
from kopt.report.reading import ReportedRun
from kopt.report.search_rows import SearchRow, search_rows
from kopt.report.speedup_charts import speedup_charts
from kopt.report.throughput import Throughput, throughput


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumView:
    """One set of terms."""

    terms: Terms
    headlines: Sequence[str]
    arms: Sequence[ArmFigures]
    wins: Mapping[str, int]
    """Arm to its searches that are wins; `solved` the same of those with a correct candidate."""
    solved: Mapping[str, int]
    over: Mapping[str, Sequence[OverBaseline]]
    """Arm to its figures over eager and torch.compile."""
    degenerate: Sequence[ArmFigures]
    comparisons: Sequence[Comparison]
    charts: Sequence[Chart]
    ratios: Chart | None
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the page shows."""

    title: str
    asked: Asked
    runs: Sequence[ReportedRun]
    strata: Sequence[StratumView]
    rows: Sequence[SearchRow]
    throughputs: Sequence[Throughput]
    cost: Sequence[Chart]
    contents: Contents
    notes: Sequence[str]

    def charts(self) -> list[Chart]:
        """Return every chart of the page, in its order."""
        found = [chart for each in self.strata for chart in each.charts]
        found += [each.ratios for each in self.strata if each.ratios is not None]
        return [*found, *self.cost]

    def first_tree(self) -> int:
        """Return the place of the tree that is shown first: that of the surest, largest win."""
        ranked = sorted(self.rows, key=lambda row: (row.is_win, row.row["speedup_lo"] or 0.0))
        return ranked[-1].tree if ranked else 0


def make_report(
    runs: Sequence[ReportedRun],
    study: Study,
    *,
    asked: Asked,
    title: str,
    most: int,
    notes: Sequence[str] = (),
) -> Report:
    """Return the report of runs.

    Args:
        runs: in the order that they are shown.
        study: of the same runs.
        asked: of the study.
        title: of the page.
        most: candidates that are told in full (kopt.report.contents).
        notes: on the runs; those of the study are added.
    """
    rows = search_rows(runs, study)
    throughputs = [throughput(run) for run in runs]
    return Report(
        title=title,
        asked=asked,
        runs=runs,
        strata=[
            _view(stratum, [row for row in rows if row.stratum == place], asked=asked, place=place)
            for place, stratum in enumerate(study.strata)
        ],
        rows=rows,
        throughputs=throughputs,
        cost=cost_charts(throughputs),
        contents=contents(runs, most=most),
        notes=[*notes, *study.notes],
    )


def _view(stratum: Stratum, rows: Sequence[SearchRow], *, asked: Asked, place: int) -> StratumView:
    key = f"terms{place}"
    shown = shown_baselines(rows)
    capped = "" if asked.cap is None else f", no search counting above {asked.cap:g}×"
    of_arm = {
        arm.arm: [row for row in rows if row.arm == arm.arm and not row.is_degenerate]
        for arm in stratum.arms
    }
    return StratumView(
        terms=stratum.terms,
        headlines=headlines(stratum, rows),
        arms=stratum.arms,
        wins={arm: sum(row.is_win for row in mine) for arm, mine in of_arm.items()},
        solved={
            arm: sum(row.trial is not None and row.trial.speedup is not None for row in mine)
            for arm, mine in of_arm.items()
        },
        over={
            arm: over_baselines(mine, shown=shown, over_seeds=asked.over_seeds, seed=asked.seed)
            for arm, mine in of_arm.items()
        },
        degenerate=stratum.degenerate,
        comparisons=stratum.comparisons,
        charts=[
            *speedup_charts(stratum, rows, key=key, capped=capped),
            *count_charts(stratum, key=key),
        ],
        ratios=_ratios(stratum, key=key),
        notes=stratum.notes,
    )


def _ratios(stratum: Stratum, *, key: str) -> Chart | None:
    chart = comparison_chart(stratum.comparisons, key=key)
    return None if chart is None else replace(chart, height=max(chart.height, 180))
