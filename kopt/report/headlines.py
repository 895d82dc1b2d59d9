"""What a set of terms came to, in a sentence each: what was won; if nothing, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kopt.analysis.study import Stratum
from kopt.report.search_rows import SearchRow
from kopt.report.wording import between, counted, times

ADVICE = {
    "no_improvement": "candidates are correct and not faster: more iterations, or another "
    "programmer, may find what these did not",
    "performance_regression": "candidates are correct and slower than the baseline: see their "
    "findings and rooflines for what holds them back",
    "correctness": "candidates compute something else: see the failed checks of their verdicts",
    "compile": "candidates do not compile: the compiler's last lines are in their verdicts",
    "crash": "candidates crash: the last lines of their output are in their verdicts",
    "timeout": "candidates take too long: evaluate.timeouts bounds each stage",
    "no_candidate": "no candidate was written: see the notes of the search, and `kopt doctor`",
}
"""Root cause to what may be done."""


def headlines(stratum: Stratum, rows: Sequence[SearchRow]) -> list[str]:
    """Return the sentences.

    Args:
        stratum: the figures.
        rows: of the same terms.
    """
    return [*_won(rows), *_means(stratum), *_nothing(rows)]


def _won(rows: Sequence[SearchRow]) -> Iterator[str]:
    sound = [row for row in rows if not row.is_degenerate]
    if not sound:
        return
    wins = [row for row in sound if row.is_win]
    problems = {row.row["problem"] for row in sound}
    won = {row.row["problem"] for row in wins}
    yield (
        f"{len(wins)} of {counted(len(sound), 'search', 'searches')} found a kernel that is surely "
        f"faster, on {len(won)} of {counted(len(problems), 'problem')}."
    )
    if wins:
        best = max(wins, key=lambda row: row.row["speedup_lo"] or 0.0)
        interval = between((best.row["speedup_lo"], best.row["speedup_hi"]))
        yield (
            f"The surest and largest win is on {best.row['problem_name']}: "
            f"{times(best.row['speedup'])} over {best.baseline} (interval: {interval})."
        )


def _means(stratum: Stratum) -> Iterator[str]:
    if len(stratum.arms) == 1 and stratum.arms[0].problems > 1:
        mean = stratum.arms[0].means[0]
        interval = between(mean.interval)
        yield (
            f"Over all problems, unsolved ones as 1: {times(mean.geomean)}"
            + (f" (95 %: {interval})." if interval else ".")
        )


def _nothing(rows: Sequence[SearchRow]) -> Iterator[str]:
    if any(row.is_win for row in rows):
        return
    causes = Counter((row.row["root_cause"] or "").partition(":")[0] for row in rows)
    for cause, count in causes.most_common():
        if cause in ADVICE:
            yield f"{cause} ({counted(count, 'search', 'searches')}): {ADVICE[cause]}."
