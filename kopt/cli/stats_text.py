"""What `kopt stats` prints: compact tables for 80 columns. Arms are letters, named on top."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from kopt.analysis.arm_figures import ArmFigures
from kopt.analysis.compare import Comparison
from kopt.analysis.study import Asked, Stratum
from kopt.cli.stats_figures import UNKNOWN, between, chance, letter, percent, times
from kopt.cli.stats_runs import Counted
from kopt.cli.stats_tables import (
    WIDTH,
    cost_table,
    counts_table,
    curves_table,
    energy_table,
    fast_table,
    means_table,
    sets_table,
    speedups_table,
    table,
    turns_table,
)


def stats_text(counted: Counted) -> str:
    """Return the whole text."""
    lines = _notes([*counted.notes, *counted.study.notes])
    for stratum in counted.study.strata:
        terms = stratum.terms
        lines += _rule(
            f"ladder {terms.ladder}, {terms.device}, over {terms.baseline}, timed by "
            f"{terms.protocol}, {terms.module_mode} mode, track {terms.track}"
        )
        lines += _stratum_lines(stratum, asked=counted.asked)
    return "\n".join(lines) + "\n"


def _stratum_lines(stratum: Stratum, *, asked: Asked) -> list[str]:
    arms = {arm.arm: letter(place) for place, arm in enumerate(stratum.arms)}
    lines = _arm_lines(stratum.arms, arms)
    if stratum.arms:
        capped = "" if asked.cap is None else f", cap {asked.cap:g}"
        after = "" if asked.at is None else f", N = {asked.at}"
        lines += speedups_table(stratum.arms, arms, mean=f"{asked.over_seeds} of")
        lines += means_table(stratum.arms, arms)
        lines += sets_table("sets", stratum.arms, arms)
        lines += sets_table("families", stratum.arms, arms)
        lines += fast_table(stratum.arms, arms)
        lines += curves_table(stratum.arms, arms, capped=capped)
        lines += _comparisons(stratum.comparisons, arms, terms=capped + after)
        lines += _optimized(stratum.comparisons, arms)
        lines += counts_table(
            "outcomes of searches", [each.outcomes for each in stratum.arms], arms
        )
        lines += counts_table("root causes", [each.root_causes for each in stratum.arms], arms)
        lines += counts_table("speed-ups of searches", [each.bands for each in stratum.arms], arms)
        lines += counts_table("verdicts", [each.verdicts for each in stratum.arms], arms)
        lines += turns_table("tools that fired", stratum.arms, arms, kind="tools")
        lines += turns_table("parent's bottleneck", stratum.arms, arms, kind="classes")
        lines += energy_table(stratum.arms, arms)
        lines += cost_table(stratum.arms, arms)
    if stratum.degenerate:
        lines += ["", "degenerate problems, where a speed-up means little:"]
        lines += [
            f"  {each.arm}: {each.problems} problem(s), geometric mean "
            f"{times(each.means[0].geomean)}, {percent(each.solved.share)} solved"
            for each in stratum.degenerate
        ]
    if stratum.notes:
        lines += ["", *_notes(stratum.notes)]
    return lines


def _arm_lines(arms: Sequence[ArmFigures], letters: Mapping[str, str]) -> list[str]:
    lines = []
    for arm in arms:
        seeds = f"{len(arm.seeds)} seed{'s' * (len(arm.seeds) != 1)}"
        lines += _wrapped(
            f"{letters[arm.arm]}  {arm.arm}: {arm.problems} problem(s), {seeds}, {arm.searches} "
            f"search(es), {arm.candidates} candidates; run {', '.join(arm.runs)}"
        )
    return lines


def _comparisons(
    comparisons: Sequence[Comparison], letters: Mapping[str, str], *, terms: str
) -> list[str]:
    shown = [each for each in comparisons if each.test is not None]
    if not shown:
        return []
    rows = [("", "ratio", "95 %", "w/t/l", "n", "p >", "Holm", "p <", "Holm")]
    for each in shown:
        test = each.test
        if test is None:
            continue
        rows.append(
            (
                f"{letters[each.first]} : {letters[each.second]}",
                times(each.ratio),
                between(each.interval),
                f"{test.wins}/{test.ties}/{test.losses}",
                str(test.num),
                chance(test.p),
                chance(each.p_holm),
                chance(each.p_reverse),
                chance(each.p_reverse_holm),
            )
        )
    title = f"paired by problem and seed (Wilcoxon; p >: first is better; n differ){terms}"
    return table(title, rows)


def _optimized(comparisons: Sequence[Comparison], letters: Mapping[str, str]) -> list[str]:
    shown = [each for each in comparisons if each.searches]
    if not shown:
        return []
    rows = [("", "optimized", "p", "Holm", "p of all outcomes")]
    for each in shown:
        counts = each.outcome_counts
        drawn = " (drawn)" if counts is not None and counts.method == "drawn" else ""
        rows.append(
            (
                f"{letters[each.first]} : {letters[each.second]}",
                f"{each.first_optimized} : {each.second_optimized} of {each.searches}",
                chance(each.p_optimized),
                chance(each.p_optimized_holm),
                UNKNOWN if counts is None else chance(counts.p) + drawn,
            )
        )
    return table("Fisher's exact test of searches, two-sided", rows)


def _rule(title: str) -> list[str]:
    return ["", *textwrap.wrap(title, WIDTH), "=" * WIDTH]


def _notes(notes: Sequence[str]) -> list[str]:
    return [line for note in notes for line in _wrapped(f"note: {note}", indent="      ")]


def _wrapped(text: str, *, indent: str = "   ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
