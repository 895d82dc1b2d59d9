"""Choose the problems of bench_scaling.py by what the rewriter and the baselines say of them.

Usage: python scripts/bench_scaling_choice.py coverage=FILE.json[,FILE.json] [candidates=6]
           [reference_us=1500] [out=data/measured/scaling_problems.json]

`coverage` is what `rewriter_coverage.py device=cuda baselines=… --json` wrote, a file a level. A
problem is taken if the rewriter sees its graph, has `candidates` ideas for it, and its reference
takes `reference_us` at most: what is dear to judge would leave few verdicts in the time of a
bench. Short and long ones of each file stand in turns, so that any number of them from the top is
a mix of all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

DEFAULTS = {
    "coverage": "",
    "candidates": "6",
    "reference_us": "1500",
    "out": "data/measured/scaling_problems.json",
}


def main() -> None:
    """Choose and write."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    if len(given) != len(sys.argv) - 1 or set(given) - set(DEFAULTS) or not given.get("coverage"):
        sys.exit(
            "expected coverage=FILE.json and " + " ".join(f"{k}={v}" for k, v in DEFAULTS.items())
        )
    options = {**DEFAULTS, **given}
    levels = [
        json.loads(Path(name).read_text(encoding="utf-8"))["rows"]
        for name in options["coverage"].split(",")
    ]
    chosen = choose(
        levels,
        candidates=int(options["candidates"]),
        reference_us=float(options["reference_us"]),
    )
    rule = {name: options[name] for name in ("candidates", "reference_us")}
    text = json.dumps({"rule": rule, "problems": chosen}, indent=1)
    Path(options["out"]).write_text(f"{text}\n", encoding="utf-8")
    print(f"{len(chosen)} problems: {options['out']}")


def choose(
    levels: Sequence[Sequence[dict[str, Any]]], *, candidates: int, reference_us: float
) -> list[dict[str, Any]]:
    """Return problems with what the reference takes, in the order in which they are to be run.

    Args:
        levels: rows of the coverage, a list a file.
        candidates: ideas that the rewriter must have.
        reference_us: most time of the faster baseline.
    """
    ordered = []
    for rows in levels:
        fit = [
            {"problem": row["problem"], "reference_us": row["baseline_us"]}
            for row in rows
            if not row["reason"]
            and len(row["candidates"]) >= candidates
            and (row["baseline_us"] or reference_us + 1) <= reference_us
        ]
        fit.sort(key=lambda row: row["reference_us"])
        ordered.append(alternating(fit))
    turns = zip_longest(*ordered)
    return [row for turn in turns for row in turn if row is not None]


def alternating(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return sorted rows as the first, the last, the second, the last but one, …."""
    half = (len(rows) + 1) // 2
    pairs = zip_longest(rows[:half], reversed(rows[half:]))
    return [row for pair in pairs for row in pair if row is not None]


if __name__ == "__main__":
    main()
