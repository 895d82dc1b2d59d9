"""Tables of the arms of `kopt stats`, for 80 columns: each a title and lines, or nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from kopt.analysis.arm_figures import ArmFigures
from kopt.analysis.sets import SetFigures
from kopt.analysis.turns import TurnFigures
from kopt.cli.columns import columns
from kopt.cli.stats_figures import between, percent, percent_between, times

WIDTH = 80
INDENT = 2
MOST_STEPS = 9
"""Points of best@N in the table; JSON has all."""
MOST_P = 5
"""Thresholds of fast_p in the table; JSON has all."""


def speedups_table(
    arms: Sequence[ArmFigures], letters: Mapping[str, str], *, mean: str
) -> list[str]:
    """Return the headline: geometric means with intervals, and shares."""
    rows = [("", "geomean", "95 %", "solved only", "best seed", "solved", "optimized", "plateau")]
    for arm in arms:
        top = arm.means[0]
        rows.append(
            (
                letters[arm.arm],
                times(top.geomean),
                between(top.interval),
                times(top.solved_only),
                times(arm.best_of_seeds),
                percent(arm.solved.share),
                percent(arm.outcomes.get("optimized", 0) / arm.searches),
                percent(arm.plateau.share),
            )
        )
    title = f"speed-up: geometric mean over problems of the {mean} seeds, unsolved = 1"
    return table(title, rows)


def means_table(arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    """Return geometric means under each cap, of solved searches too where some are not."""
    caps = [each.cap for each in arms[0].means]
    heads = ["uncapped" if cap is None else f"cap {cap:g}" for cap in caps]
    rows = [("", *heads)]
    for arm in arms:
        rows.append((letters[arm.arm], *(times(each.geomean) for each in arm.means)))
        if arm.solved.share < 1.0:
            solved = (times(each.solved_only) for each in arm.means)
            rows.append((f"{letters[arm.arm]} solved only", *solved))
    return table("geometric mean under caps", rows)


def sets_table(kind: str, arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    """Return the figures of `sets` or `families` where an arm has several; else nothing."""
    rows = [(kind, "", "problems", "geomean", "95 %", "highest", "optimized")]
    for arm in arms:
        figures: Sequence[SetFigures] = arm.sets if kind == "sets" else arm.families
        if len(figures) < 2:
            continue
        rows += [
            (
                f"  {each.name}",
                letters[arm.arm],
                str(each.problems),
                times(each.geomean),
                between(each.interval),
                times(each.greatest),
                f"{each.optimized}/{each.searches}",
            )
            for each in figures
        ]
    return ["", *columns(rows, left=2)] if len(rows) > 1 else []


def fast_table(arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    """Return fast_p with intervals."""
    shown = arms[0].fast[:MOST_P]
    rows = [("", *("correct" if each.p == 0.0 else f"p = {each.p:g}" for each in shown))]
    rows += [
        (letters[arm.arm], *(percent_between(each.share) for each in arm.fast[:MOST_P]))
        for arm in arms
    ]
    return table("fast_p: % of problems above p (Wilson's 95 %)", rows)


def curves_table(
    arms: Sequence[ArmFigures], letters: Mapping[str, str], *, capped: str
) -> list[str]:
    """Return best@N; nothing where there is no candidate."""
    steps = [each.candidates for each in arms[0].best_at][-MOST_STEPS:]
    if not steps:
        return []
    rows = [("N", *map(str, steps))]
    for arm in arms:
        at = {each.candidates: each.geomean for each in arm.best_at}
        rows.append((letters[arm.arm], *(times(at.get(step)) for step in steps)))
    return table(f"best@N: what led, surest first, after N candidates by the journal{capped}", rows)


def counts_table(
    title: str, of_arms: Sequence[Mapping[str, int]], letters: Mapping[str, str]
) -> list[str]:
    """Return counts by name, a column for each arm; nothing where all are 0."""
    names = list(dict.fromkeys(name for each in of_arms for name in each))
    names = [name for name in names if any(each.get(name) for each in of_arms)]
    if not names:
        return []
    rows = [(title, *letters.values())]
    rows += [(f"  {name}", *(str(each.get(name, 0)) for each in of_arms)) for name in names]
    return ["", *columns(rows)]


def turns_table(
    title: str, arms: Sequence[ArmFigures], letters: Mapping[str, str], *, kind: str
) -> list[str]:
    """Return what followed findings (`tools`), or profiles (`classes`); nothing of no turns."""
    rows = [(title, "", "turns", "problems", "> 1.5x", "rate %", "mean", "best")]
    for arm in arms:
        figures: Sequence[TurnFigures] = arm.tools if kind == "tools" else arm.classes
        rows += [
            (
                f"  {each.name}",
                letters[arm.arm],
                str(each.turns),
                str(each.problems),
                str(each.hits),
                percent_between(each.rate),
                times(each.mean_gain),
                times(each.best_gain),
            )
            for each in figures
        ]
    return ["", *columns(rows, left=2, gap=1)] if len(rows) > 1 else []


def energy_table(arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    """Return what best candidates save; nothing where no energy was recorded."""
    rows = [("", "searches", "measured", "by proxy")]
    rows += [
        (
            letters[arm.arm],
            str(arm.energy.searches),
            times(arm.energy.measured),
            times(arm.energy.proxy),
        )
        for arm in arms
        if arm.energy is not None
    ]
    title = "energy: reference / best candidate, geometric mean of searches"
    return table(title, rows) if len(rows) > 1 else []


def cost_table(arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    """Return what arms took."""
    rows = [("", "a search", "known before", "device h", "tokens in", "tokens out", "USD")]
    rows += [
        (
            letters[arm.arm],
            f"{arm.candidates_per_search:g}",
            str(arm.cached),
            f"{arm.device_s / 3600.0:.2f}",
            f"{arm.tokens_in:,}",
            f"{arm.tokens_out:,}",
            f"{arm.cost_usd:.2f}",
        )
        for arm in arms
    ]
    return table("cost: candidates a search (median), and all in all", rows)


def table(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table below its title, as wide as it must be and no wider than WIDTH if it can."""
    lines = columns(rows)
    if max(map(len, lines)) + INDENT > WIDTH:
        lines = columns(rows, gap=1)
    return ["", *textwrap.wrap(title, WIDTH), *(" " * INDENT + line for line in lines)]
