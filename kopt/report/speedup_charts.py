"""Charts of speed-ups: each search's, their distribution, fast_p, best@N, means under caps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kopt.analysis.arm_figures import ArmFigures
from kopt.analysis.proportion import FAST_P
from kopt.analysis.score import CAPS
from kopt.analysis.study import Stratum
from kopt.report.charts import PARITY, Chart, axis, category_axis, dodged, speedup_axis
from kopt.report.palette import NEUTRAL, of_place
from kopt.report.search_rows import SearchRow

MAX_BARS = 400
"""Searches up to which each has its interval drawn."""
START = 1.05
"""How far below the slowest search, or below 1x, a curve of shares begins."""


def speedup_charts(
    stratum: Stratum, rows: Sequence[SearchRow], *, key: str, capped: str
) -> list[Chart]:
    """Return the charts of one set of terms; degenerate problems are not in them.

    Args:
        stratum: whose figures are shown.
        rows: of the same terms.
        key: begins the keys of the charts.
        capped: what caps the counted speed-ups, in words; empty where nothing does.
    """
    arms = stratum.arms
    sound = [row for row in rows if not row.is_degenerate]
    found = [_searches(sound, arms, key=key), _distribution(sound, arms, key=key)]
    found += [_fast_p(arms, key=key), _best_at(arms, key=key, capped=capped), _means(arms, key=key)]
    return [chart for chart in found if chart is not None]


def _searches(rows: Sequence[SearchRow], arms: Sequence[ArmFigures], *, key: str) -> Chart | None:
    solved = [row for row in rows if row.row["speedup"] is not None and row.trial is not None]
    if not solved:
        return None
    solved.sort(key=_speedup)
    names = [_name(row) for row in solved]
    traces = []
    for place, arm in enumerate(arms):
        colour, symbol, _ = of_place(place)
        for is_win, suffix in ((True, ""), (False, "-open")):
            chosen = [
                (at, row)
                for at, row in enumerate(solved)
                if row.arm == arm.arm and row.is_win == is_win
            ]
            if not chosen:
                continue
            word = "win" if is_win else "no win"
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": f"{arm.arm}: {word}",
                    "x": [at for at, _ in chosen],
                    "y": [_speedup(row) for _, row in chosen],
                    "error_y": _errors([row for _, row in chosen], few=len(solved) <= MAX_BARS),
                    "marker": {"color": colour, "symbol": symbol + suffix, "size": 9},
                    "text": [f"{names[at]}: {row.row['outcome']}" for at, row in chosen],
                    "hovertemplate": "%{text}<br>%{y:.3g}×<extra></extra>",
                }
            )
    unsolved = sum(row.row["speedup"] is None for row in rows)
    values = [value for row in solved for value in _whole(row)]
    return Chart(
        key=f"{key}-searches",
        title="Speed-up of each search",
        caption="Best candidate of each search over its baseline, with its interval, in "
        "order. Filled: a win (above 1.01×, interval above 1). Hollow: correct, but no win. "
        f"{unsolved} unsolved search(es) are not in the picture.",
        data=traces,
        layout={
            "xaxis": axis("searches, slowest first", showticklabels=False, showgrid=False),
            "yaxis": speedup_axis("speed-up (baseline ÷ candidate)", values),
            "shapes": [PARITY],
        },
    )


def _distribution(
    rows: Sequence[SearchRow], arms: Sequence[ArmFigures], *, key: str
) -> Chart | None:
    traces, shown = [], []
    for place, arm in enumerate(arms):
        values = sorted(
            row.row["speedup"]
            for row in rows
            if row.arm == arm.arm and row.trial is not None and row.row["speedup"] is not None
        )
        if not values:
            continue
        colour, _, dash = of_place(place)
        shown += values
        whole = arm.searches
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": arm.arm,
                "line": {"shape": "hv", "color": colour, "dash": dash, "width": 2},
                "x": [min(values[0], 1.0) / START, *values],
                "y": [100.0 * (len(values) - at) / whole for at in range(len(values) + 1)],
                "hovertemplate": "%{y:.0f} % of searches at %{x:.3g}× or more<extra></extra>",
            }
        )
    if not traces:
        return None
    return Chart(
        key=f"{key}-distribution",
        title="Distribution of speed-ups",
        caption="Share of all searches, unsolved ones included, whose best candidate reaches a "
        "speed-up. Whether one is a win is in the chart before: this one has no intervals.",
        data=traces,
        layout={
            "xaxis": speedup_axis("speed-up of the best candidate, at least", shown),
            "yaxis": axis("searches, %", range=[0, 103]),
        },
    )


def _fast_p(arms: Sequence[ArmFigures], *, key: str) -> Chart | None:
    traces = []
    for place, arm in enumerate(arms):
        colour, symbol, dash = of_place(place)
        points = [each for each in arm.fast if each.p > 0.0]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": arm.arm,
                "line": {"color": colour, "dash": dash},
                "marker": {"color": colour, "symbol": symbol, "size": 8},
                "x": dodged(len(points), place=place, arms=len(arms)),
                "text": [f"{each.p:g}×" for each in points],
                "y": [100.0 * each.share.share for each in points],
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [100.0 * (each.share.high - each.share.share) for each in points],
                    "arrayminus": [100.0 * (each.share.share - each.share.low) for each in points],
                    "thickness": 1,
                },
                "hovertemplate": "above %{text}: %{y:.0f} % of problems<extra></extra>",
            }
        )
    if not traces:
        return None
    return Chart(
        key=f"{key}-fast",
        title="fast_p",
        caption="Share of problems that are solved with a speed-up above p, with Wilson's 95 % "
        "interval. By the estimate alone, as KernelBench counts: a win asks more.",
        data=traces,
        layout={
            "xaxis": category_axis("p", [f"{p:g}×" for p in FAST_P if p > 0.0]),
            "yaxis": axis("problems, %", range=[0, 103]),
        },
    )


def _best_at(arms: Sequence[ArmFigures], *, key: str, capped: str) -> Chart | None:
    traces, shown = [], []
    for place, arm in enumerate(arms):
        if not arm.best_at:
            continue
        colour, symbol, dash = of_place(place)
        shown += [each.geomean for each in arm.best_at]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": arm.arm,
                "line": {"shape": "hv", "color": colour, "dash": dash},
                "marker": {"color": colour, "symbol": symbol, "size": 7},
                "x": [each.candidates for each in arm.best_at],
                "y": [each.geomean for each in arm.best_at],
                "text": [f"{each.running} search(es) got so far" for each in arm.best_at],
                "hovertemplate": "best@%{x}: %{y:.3g}×<br>%{text}<extra></extra>",
            }
        )
    if not traces:
        return None
    steps = sorted({each.candidates for arm in arms for each in arm.best_at})
    return Chart(
        key=f"{key}-best",
        title="best@N",
        caption="Geometric mean over problems of what led after N candidates of each search, "
        f"unsolved so far = 1{capped}. What leads is the surest, so a curve may dip.",
        data=traces,
        layout={
            "xaxis": axis(
                "candidates of each search, N",
                type="log",
                tickvals=steps,
                ticktext=[f"{step:,}" for step in steps],
            ),
            "yaxis": speedup_axis("speed-up", shown),
            "shapes": [PARITY],
        },
    )


def _means(arms: Sequence[ArmFigures], *, key: str) -> Chart | None:
    traces, shown = [], []
    for place, arm in enumerate(arms):
        colour, symbol, _ = of_place(place)
        highs = [each.interval[1] if each.interval else each.geomean for each in arm.means]
        lows = [each.interval[0] if each.interval else each.geomean for each in arm.means]
        shown += [*highs, *lows]
        means = [each.geomean for each in arm.means]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": arm.arm,
                "x": dodged(len(means), place=place, arms=len(arms)),
                "text": [_cap(each.cap) for each in arm.means],
                "y": means,
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [high - mean for high, mean in zip(highs, means, strict=True)],
                    "arrayminus": [mean - low for low, mean in zip(lows, means, strict=True)],
                },
                "marker": {"color": colour, "symbol": symbol, "size": 10},
                "hovertemplate": "cap %{text}: %{y:.3g}×<extra></extra>",
            }
        )
    if not traces:
        return None
    return Chart(
        key=f"{key}-means",
        title="Means under caps",
        caption="Geometric mean over problems when no search counts more than the cap, unsolved = "
        "1, with its 95 % bootstrap interval (none with one problem).",
        data=traces,
        layout={
            "xaxis": category_axis("cap of one search", [_cap(cap) for cap in CAPS]),
            "yaxis": speedup_axis("speed-up", shown),
            "shapes": [PARITY],
        },
    )


def _cap(cap: float | None) -> str:
    return "none" if cap is None else f"{cap:g}×"


def _speedup(row: SearchRow) -> float:
    return row.row["speedup"] or 1.0


def _name(row: SearchRow) -> str:
    return f"{row.row['problem_name']}, seed {row.row['seed']}"


def _whole(row: SearchRow) -> list[float]:
    values = (row.row["speedup"], row.row["speedup_lo"], row.row["speedup_hi"])
    return [value for value in values if value is not None and value > 0.0]


def _errors(rows: Sequence[SearchRow], *, few: bool) -> dict[str, Any]:
    highs = [(row.row["speedup_hi"] or _speedup(row)) - _speedup(row) for row in rows]
    lows = [_speedup(row) - (row.row["speedup_lo"] or _speedup(row)) for row in rows]
    return {
        "type": "data",
        "symmetric": False,
        "array": highs,
        "arrayminus": lows,
        "thickness": 1,
        "width": 3,
        "visible": few,
        "color": NEUTRAL,
    }
