"""DPO: pairs of answers to one prompt, of one parent: right over wrong, faster over slower.

Faster means beyond noise: the low end of one interval above the high end of the other by a margin,
on one device and ladder. An answer without a candidate is wrong too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from kopt.data.corpus.columns import MESSAGE
from kopt.data.corpus.trial_row import TrialRow
from kopt.data.exports.facts import FACTS, facts_of
from kopt.data.exports.searched import Searched

DPO_SCHEMA = pa.schema(
    [
        pa.field("prompt", pa.list_(MESSAGE)),
        pa.field("chosen", pa.list_(MESSAGE)),
        pa.field("rejected", pa.list_(MESSAGE)),
        pa.field("preference", pa.string()),
        pa.field("margin", pa.float64()),
        pa.field("chosen_candidate", pa.string()),
        pa.field("rejected_candidate", pa.string()),
        pa.field("chosen_speedup", pa.float64()),
        pa.field("rejected_speedup", pa.float64()),
        pa.field("rejected_verdict", pa.string()),
        *FACTS,
    ]
)
"""`preference` is `correct_over_wrong` or `faster_over_slower`; `margin` is the chosen interval's
low end ÷ the rejected one's high end, null where the rejected is not correct; `rejected_verdict` is
`no_candidate` where the answer held none."""

Pair = tuple[TrialRow, TrialRow, float | None]
"""Chosen, rejected, margin."""


def dpo_rows(searched: Searched) -> Iterator[dict[str, Any]]:
    """Give the pairs of a search."""
    groups: defaultdict[tuple[str | None, str | int], list[TrialRow]] = defaultdict(list)
    for row in searched.chosen():
        asked = row.expansion
        groups[asked["parent"], row.prompt or asked["expansion"]].append(row)
    used: set[tuple[str | None, ...]] = set()
    ahead = searched.read_ahead([row for rows in groups.values() for row in rows])
    for (_, prompt), rows in groups.items():
        pairs = pairs_of([*islice(ahead, len(rows))], searched=searched)
        taken = 0
        for chosen, rejected, margin in pairs:
            if taken == searched.choice.max_pairs:
                searched.leave_out("pair beyond the most of its prompt", times=len(pairs) - taken)
                break
            made = _pair(searched, chosen, rejected, margin)
            key = (str(prompt), chosen.candidate, rejected.candidate, _answer_of(rejected))
            if made is not None and key not in used:
                used.add(key)
                taken += 1
                yield made


def pairs_of(rows: list[TrialRow], *, searched: Searched) -> list[Pair]:
    """Return the pairs among answers to one prompt, the clearest first.

    Right over wrong comes before faster over slower, the faster chosen one first.
    """
    choice = searched.choice
    good, wrong = [], []
    for row in rows:
        judged = row.judged
        if judged is not None and judged.is_correct:
            good.append(row)
        elif judged is not None or (row.made is None and row.answer is not None):
            wrong.append(row)
        else:
            searched.leave_out("not judged")
    good = [row for row in good if not choice.why_not_good(row.judged)] or []
    slower = [row for row in rows if row.judged is not None and row.judged.is_correct]
    good.sort(key=lambda row: -_interval(row)[0])
    pairs: list[Pair] = [(one, other, None) for one in good for other in wrong]
    for one in good:
        for other in slower:
            margin = _interval(one)[0] / _interval(other)[1] if _interval(other)[1] > 0 else 0.0
            if one is not other and margin > 1.0 + choice.margin and _is_alike(one, other):
                pairs.append((one, other, margin))
    return pairs


def _pair(
    searched: Searched, chosen: TrialRow, rejected: TrialRow, margin: float | None
) -> dict[str, Any] | None:
    one, other = searched.turn(chosen), searched.turn(rejected)
    if one is None or other is None:
        return None
    if one.completion == other.completion:
        searched.leave_out("pair of one text")
        return None
    judged = rejected.judged
    return {
        "prompt": one.prompt,
        "chosen": [{"role": "assistant", "content": one.completion}],
        "rejected": [{"role": "assistant", "content": other.completion}],
        "preference": "correct_over_wrong" if margin is None else "faster_over_slower",
        "margin": margin,
        "chosen_candidate": chosen.candidate,
        "rejected_candidate": rejected.candidate,
        "chosen_speedup": None if chosen.judged is None else chosen.judged.speedup,
        "rejected_speedup": None if judged is None else judged.speedup,
        "rejected_verdict": "no_candidate" if judged is None else judged.kind,
        **facts_of(searched.search, chosen, texts=searched.texts, origin=one.origin),
    }


def _interval(row: TrialRow) -> tuple[float, float]:
    interval = None if row.judged is None else row.judged.speedup_ci
    return interval or (0.0, float("inf"))


def _is_alike(one: TrialRow, other: TrialRow) -> bool:
    """Whether two were judged on one device by one ladder."""
    first, second = one.judged, other.judged
    if first is None or second is None:
        return False
    return (first.device, first.ladder) == (second.device, second.ladder)


def _answer_of(row: TrialRow) -> str | None:
    return None if row.answer is None else row.answer.get("text")
