"""The strategy tracker: how often each technique paid, over runs, by kind of work.

Source: KernelOPT §4.5 ("per-kernel-type success rates; strategies with < 30 % success after ≥ 3
attempts are flagged as AVOID") and App. C (those with no failure and ≥ 2 successes are recommended:
PREFER here). The kind of work is the problem's family, and the bottleneck class of what the
candidate was made from, where that was profiled; never the problem itself. A try succeeds where the
candidate is right and faster, beyond its noise, than what it was made from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kopt.memory.technique import labels_of
from kopt.memory.tried import Tried

Advice = Literal["AVOID", "PREFER"]
MIN_TRIES = 3
"""From which on AVOID is possible."""
AVOID_BELOW = 0.30
"""Rate of success."""
MIN_SUCCESSES = 2
"""From which on PREFER is possible; a single failure ends it."""
MAX_RECORDS = 16
"""Records of one family or class that a search is told, the most tried first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often a technique was tried in one kind of work, and how often it paid."""

    label: str
    family: str
    """Of the problem; empty where it is not known."""
    bottleneck: str
    """Class of what was changed; empty where that was not profiled."""
    tried: int
    succeeded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRecord:
    """What the tracker says of a technique in one family or class."""

    label: str
    group: Literal["family", "class"]
    name: str
    """Of the family or class."""
    tried: int
    succeeded: int
    advice: Advice


def advice_of(*, tried: int, succeeded: int) -> Advice | None:
    """Return what a rate comes to; None where it says nothing yet."""
    if tried >= MIN_TRIES and succeeded < AVOID_BELOW * tried:
        return "AVOID"
    if succeeded >= MIN_SUCCESSES and succeeded == tried:
        return "PREFER"
    return None


def tallies_of(tried: Iterable[tuple[Tried, str]], *, family: str) -> tuple[Tally, ...]:
    """Return the tallies of what one search tried.

    Args:
        tried: each candidate, with the bottleneck class of what it was made from (or empty).
        family: of the search's problem.
    """
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for each, bottleneck in tried:
        for label in labels_of(each.strategy):
            count = counts[label, bottleneck]
            count[0] += 1
            count[1] += each.improved
    return tuple(
        Tally(
            label=label,
            family=family,
            bottleneck=bottleneck,
            tried=count[0],
            succeeded=count[1],
        )
        for (label, bottleneck), count in sorted(counts.items())
    )


def summed(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Return one tally for each technique, family and class."""
    counts: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for each in tallies:
        count = counts[each.label, each.family, each.bottleneck]
        count[0] += each.tried
        count[1] += each.succeeded
    return tuple(
        Tally(label=label, family=family, bottleneck=bottleneck, tried=one, succeeded=two)
        for (label, family, bottleneck), (one, two) in sorted(counts.items())
    )


def records_of(tallies: Iterable[Tally], *, family: str) -> tuple[StrategyRecord, ...]:
    """Return what a search of a problem of that family is told: by family, and by each class."""
    groups: dict[tuple[Literal["family", "class"], str], dict[str, list[int]]] = {}
    for each in tallies:
        places: list[tuple[Literal["family", "class"], str]] = []
        if family and each.family == family:
            places.append(("family", family))
        if each.bottleneck:
            places.append(("class", each.bottleneck))
        for place in places:
            count = groups.setdefault(place, {}).setdefault(each.label, [0, 0])
            count[0] += each.tried
            count[1] += each.succeeded
    records: list[StrategyRecord] = []
    for (group, name), labels in sorted(groups.items(), key=lambda item: item[0], reverse=True):
        of_group = [
            StrategyRecord(
                label=label, group=group, name=name, tried=one, succeeded=two, advice=advice
            )
            for label, (one, two) in labels.items()
            if (advice := advice_of(tried=one, succeeded=two)) is not None
        ]
        of_group.sort(key=lambda record: (-record.tried, record.label))
        records += of_group[:MAX_RECORDS]
    return tuple(records)


def pertinent(
    records: Sequence[StrategyRecord], *, bottleneck: str | None
) -> tuple[StrategyRecord, ...]:
    """Return those for one version: of the family, then of its class; the family's word counts.

    Args:
        records: that the search began with.
        bottleneck: class of the version; None where it was not profiled.
    """
    chosen: dict[str, StrategyRecord] = {}
    for record in records:
        if record.group == "family" or record.name == bottleneck:
            chosen.setdefault(record.label, record)
    return tuple(chosen.values())
