"""Charts of cost: candidates over time, and the stages in which candidates spent their seconds."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.report.charts import Chart, axis
from kopt.report.palette import COLOURS, NEUTRAL, PATTERNS, of_place
from kopt.report.throughput import WAITS, Throughput

LEAST_SHARE = 0.002
"""Of all seconds; stages with less are left out of the picture."""


def cost_charts(runs: Sequence[Throughput]) -> list[Chart]:
    """Return the charts of all runs together."""
    found = [_over_time(runs), _stages(runs)]
    return [chart for chart in found if chart is not None]


def _over_time(runs: Sequence[Throughput]) -> Chart | None:
    traces = []
    for place, run in enumerate(runs):
        if len(run.curve) < 2:
            continue
        colour, _, dash = of_place(place)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": run.label,
                "x": [hours for hours, _ in run.curve],
                "y": [count for _, count in run.curve],
                "line": {"color": colour, "dash": dash, "width": 2},
                "hovertemplate": "%{y} candidates after %{x:.3g} h<extra></extra>",
            }
        )
    if not traces:
        return None
    return Chart(
        key="cost-time",
        title="Candidates judged over time",
        caption="Verdicts, those known before included, against hours in which the run was driven.",
        data=traces,
        layout={
            "xaxis": axis("hours", rangemode="tozero"),
            "yaxis": axis("candidates", rangemode="tozero"),
            "showlegend": True,
        },
    )


def _stages(runs: Sequence[Throughput]) -> Chart | None:
    total: dict[str, float] = {}
    for run in runs:
        for stage, spent_s in run.stages_s.items():
            total[stage] = total.get(stage, 0.0) + spent_s
    whole = sum(total.values())
    names = [stage for stage, spent_s in total.items() if spent_s >= LEAST_SHARE * whole]
    names.sort(key=lambda stage: total[stage])
    if not names:
        return None
    return Chart(
        key="cost-stages",
        title="Where candidates spent their time",
        caption="Seconds in each stage, summed over all candidates that were run; they overlap, as "
        "many are under way at once. Grey: waiting for a place.",
        data=[
            {
                "type": "bar",
                "orientation": "h",
                "y": names,
                "x": [total[stage] for stage in names],
                "marker": {
                    "color": [NEUTRAL if stage in WAITS else COLOURS[0] for stage in names],
                    "pattern": {"shape": [PATTERNS[stage in WAITS] for stage in names]},
                },
                "hovertemplate": "%{y}: %{x:.3s} s<extra></extra>",
            }
        ],
        layout={
            "xaxis": axis("seconds, all candidates together", rangemode="tozero"),
            "yaxis": axis("", type="category"),
            "showlegend": False,
        },
        height=110 + 24 * len(names),
    )
