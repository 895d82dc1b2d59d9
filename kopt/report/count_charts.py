"""Charts of counts: outcomes, root causes, verdicts; and of ablations, each a ratio of two arms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kopt.analysis.arm_figures import ArmFigures
from kopt.analysis.compare import Comparison
from kopt.analysis.study import Stratum
from kopt.report.charts import Chart, axis, speedup_axis
from kopt.report.palette import (
    COLOURS,
    OUTCOME_COLOURS,
    PATTERNS,
    VERDICT_COLOURS,
)

ROW_PX = 34
"""Height of a bar with its gap."""
FEW = 8
"""Counts below which each has its tick."""


def count_charts(stratum: Stratum, *, key: str) -> list[Chart]:
    """Return the charts of one set of terms; `key` begins their keys."""
    arms = stratum.arms
    found = [
        _stacked(
            arms,
            lambda arm: arm.outcomes,
            colours=OUTCOME_COLOURS,
            key=f"{key}-outcomes",
            title="Outcomes of searches",
            caption="Only `optimized` is a win: above 1.01×, and the interval above 1. `matched` "
            "is correct, and not surely faster.",
            unit="searches",
        ),
        _stacked(
            arms,
            lambda arm: arm.root_causes,
            colours={},
            key=f"{key}-causes",
            title="Root causes",
            caption="Why a search is not `optimized`.",
            unit="searches",
        ),
        _stacked(
            arms,
            lambda arm: arm.verdicts,
            colours=VERDICT_COLOURS,
            key=f"{key}-verdicts",
            title="Verdicts on candidates",
            caption="Every candidate that was judged, those known before included.",
            unit="candidates",
        ),
    ]
    return [chart for chart in found if chart is not None]


def comparison_chart(comparisons: Sequence[Comparison], *, key: str) -> Chart | None:
    """Return the ratios of arms with their intervals; None where nothing is paired."""
    shown = [each for each in comparisons if each.ratio is not None][::-1]
    if not shown:
        return None
    ratios = [each.ratio or 1.0 for each in shown]
    intervals = [each.interval or (ratio, ratio) for each, ratio in zip(shown, ratios, strict=True)]
    names = [f"{each.first} ÷ {each.second}" for each in shown]
    data = {
        "type": "scatter",
        "mode": "markers",
        "x": ratios,
        "y": names,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [high - ratio for (_, high), ratio in zip(intervals, ratios, strict=True)],
            "arrayminus": [ratio - low for (low, _), ratio in zip(intervals, ratios, strict=True)],
        },
        "marker": {"color": COLOURS[0], "size": 10},
        "hovertemplate": "%{y}: %{x:.3g}×<extra></extra>",
    }
    line = {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": 1,
        "x1": 1,
        "line": {"dash": "dot", "width": 1, "color": "#808080"},
    }
    ends = [end for pair in intervals for end in pair if end > 0.0]
    return Chart(
        key=f"{key}-ratios",
        title="Arms against each other",
        caption="Geometric mean over paired problems of the first arm's speed-up ÷ the second's, "
        "with its 95 % bootstrap interval: where it holds 1, neither is better.",
        data=[data],
        layout={
            "xaxis": speedup_axis("ratio", [*ratios, *ends]),
            "yaxis": axis("", type="category"),
            "shapes": [line],
        },
        height=110 + ROW_PX * len(shown),
    )


def _stacked(
    arms: Sequence[ArmFigures],
    counts: Callable[[ArmFigures], Mapping[str, int]],
    *,
    colours: Mapping[str, str],
    key: str,
    title: str,
    caption: str,
    unit: str,
) -> Chart | None:
    names = list(dict.fromkeys(name for arm in arms for name in counts(arm)))
    names.sort(key=lambda name: list(colours).index(name) if name in colours else len(colours))
    if not names:
        return None
    most = max(sum(counts(arm).values()) for arm in arms)
    data: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "y": [arm.arm for arm in arms],
            "x": [counts(arm).get(name, 0) for arm in arms],
            "text": [counts(arm).get(name) or "" for arm in arms],
            "textposition": "inside",
            "insidetextanchor": "middle",
            "marker": {
                "color": colours.get(name, COLOURS[place % len(COLOURS)]),
                "pattern": {
                    "shape": PATTERNS[place % len(PATTERNS)],
                    "size": 7,
                    "solidity": 0.25,
                    "fillmode": "overlay",
                    "fgcolor": "rgba(255,255,255,0.55)",
                },
            },
            "hovertemplate": f"{name}: %{{x}} {unit}<extra>%{{y}}</extra>",
        }
        for place, name in enumerate(names)
    ]
    return Chart(
        key=key,
        title=title,
        caption=caption,
        data=data,
        layout={
            "barmode": "stack",
            "xaxis": axis(unit, rangemode="tozero", **({"dtick": 1} if most < FEW else {})),
            "yaxis": axis("", type="category", autorange="reversed"),
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
            "margin": {"l": 56, "r": 16, "t": 40, "b": 48},
        },
        height=150 + ROW_PX * len(arms),
    )
