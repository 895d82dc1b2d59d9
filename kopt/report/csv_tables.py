"""The report's tables as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from kopt.analysis.study import Study
from kopt.report.search_rows import SearchRow


def searches_csv(rows: Sequence[SearchRow]) -> str:
    """Return a line a search: the columns of results.parquet, and what the report adds."""
    return _csv(
        [
            {
                "run": each.run,
                "search": each.search,
                **each.row,
                "arm": each.arm,
                "is_win": each.is_win,
                "degenerate": each.is_degenerate,
                "baseline": each.baseline,
                "counted": each.trial is not None,
            }
            for each in rows
        ]
    )


def arms_csv(study: Study) -> str:
    """Return a line for each arm and set of terms; intervals are 95 %."""
    lines = []
    for stratum in study.strata:
        for arm in stratum.arms:
            line: dict[str, object] = {"arm": arm.arm, **asdict(stratum.terms)}
            line |= {
                "problems": arm.problems,
                "searches": arm.searches,
                "candidates": arm.candidates,
                "optimized": arm.outcomes.get("optimized", 0),
            }
            for mean in arm.means:
                name = "geomean" if mean.cap is None else f"geomean_cap_{mean.cap:g}"
                low, high = mean.interval or (None, None)
                line |= {name: mean.geomean, f"{name}_lo": low, f"{name}_hi": high}
            for fast in arm.fast:
                name = f"fast_{fast.p:g}"
                share = fast.share
                line |= {name: share.share, f"{name}_lo": share.low, f"{name}_hi": share.high}
            line |= {
                "device_s": arm.device_s,
                "tokens_in": arm.tokens_in,
                "tokens_out": arm.tokens_out,
                "cost_usd": arm.cost_usd,
            }
            lines.append(line)
    return _csv(lines)


def comparisons_csv(study: Study) -> str:
    """Return a line for each pair of arms; empty of one arm."""
    lines = []
    for stratum in study.strata:
        for each in stratum.comparisons:
            low, high = each.interval or (None, None)
            lines.append(
                {
                    **asdict(stratum.terms),
                    "first": each.first,
                    "second": each.second,
                    "problems": each.problems,
                    "searches": each.searches,
                    "ratio": each.ratio,
                    "ratio_lo": low,
                    "ratio_hi": high,
                    "p_first_better": None if each.test is None else each.test.p,
                    "p_first_better_holm": each.p_holm,
                    "p_second_better": each.p_reverse,
                    "p_second_better_holm": each.p_reverse_holm,
                    "first_optimized": each.first_optimized,
                    "second_optimized": each.second_optimized,
                    "p_optimized": each.p_optimized,
                    "p_optimized_holm": each.p_optimized_holm,
                }
            )
    return _csv(lines)


def _csv(lines: Sequence[Mapping[str, object]]) -> str:
    if not lines:
        return ""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for line in lines for name in line)))
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in line.items()} for line in lines)
    return out.getvalue()


def _plain(value: object) -> object:
    """A text that a spreadsheet would take for a formula is led by an apostrophe."""
    is_formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if is_formula else value
