"""The strategy tracker's arithmetic: labels, rates, advice, kinds of work."""

from __future__ import annotations

import pytest

from kopt.memory.technique import labels_of
from kopt.memory.tracker import (
    MAX_RECORDS,
    Tally,
    advice_of,
    pertinent,
    records_of,
    summed,
    tallies_of,
)
from kopt.memory.tried import Tried


def made(strategy: str, *, speedup: float | None, over: float = 1.0) -> Tried:
    return Tried(
        candidate="c",
        parent=None,
        expansion=0,
        strategy=strategy,
        language="triton",
        kind="crashed" if speedup is None else "correct",
        reason="",
        speedup=speedup,
        speedup_ci=None if speedup is None else (speedup * 0.99, speedup * 1.01),
        over=over,
    )


def tally(label: str, tried: int, succeeded: int, *, family: str = "norm", bottleneck: str = ""):
    return Tally(
        label=label, family=family, bottleneck=bottleneck, tried=tried, succeeded=succeeded
    )


@pytest.mark.parametrize(
    ("tried", "succeeded", "advice"),
    [
        (2, 0, None),  # too few to tell
        (3, 0, "AVOID"),
        (10, 2, "AVOID"),
        (10, 3, None),  # 30 % is not under 30 %
        (1, 1, None),
        (2, 2, "PREFER"),
        (130, 130, "PREFER"),
        (132, 130, None),
    ],
)
def test_advice_is_the_papers(tried: int, succeeded: int, advice: str | None) -> None:
    assert advice_of(tried=tried, succeeded=succeeded) == advice


@pytest.mark.parametrize(
    ("strategy", "labels"),
    [
        ("Fused the epilogue and added autotuning", ("autotuning", "fusion")),
        ("use tl.dot with TF32", ("tensor cores", "tf32")),
        ("Pad shared memory rows", ("shared-memory padding", "shared-memory tiling")),
        ("float4 loads", ("vector loads",)),
        ("Guess 7 things at once, 64x64", ("guess # things at once #",)),
        ("", ()),
        ("!?", ()),
    ],
)
def test_a_strategy_counts_for_the_techniques_it_names(strategy: str, labels: tuple[str]) -> None:
    assert labels_of(strategy) == labels


def test_a_try_succeeds_where_it_is_faster_than_what_it_was_made_from_beyond_its_noise() -> None:
    tried = [
        (made("fusion", speedup=2.0), "memory"),
        (made("fusion", speedup=2.0, over=2.0), "memory"),  # within ± 1 %
        (made("fusion", speedup=None), "memory"),
        (made("fusion", speedup=3.0), ""),
    ]
    assert tallies_of(tried, family="norm") == (
        tally("fusion", 1, 1),
        tally("fusion", 3, 1, bottleneck="memory"),
    )


def test_tallies_of_one_kind_add_up() -> None:
    assert summed([tally("a", 1, 1), tally("b", 1, 0), tally("a", 2, 0)]) == (
        tally("a", 3, 1),
        tally("b", 1, 0),
    )


def test_a_search_is_told_of_its_family_and_a_version_of_its_class() -> None:
    tallies = [
        tally("fusion", 3, 0),
        tally("algebra", 4, 4, family="linear", bottleneck="memory"),
        tally("fusion", 5, 5, family="linear", bottleneck="memory"),
        tally("unrolling", 9, 0, family="linear", bottleneck="compute"),
    ]
    records = records_of(tallies, family="norm")

    def told(bottleneck: str | None):
        chosen = pertinent(records, bottleneck=bottleneck)
        return [(each.label, each.group, each.advice) for each in chosen]

    assert told(None) == [("fusion", "family", "AVOID")]
    # The family's own word stands above the class's.
    assert told("memory") == [("fusion", "family", "AVOID"), ("algebra", "class", "PREFER")]
    assert told("compute") == [("fusion", "family", "AVOID"), ("unrolling", "class", "AVOID")]
    assert records_of(tallies, family="") == records[1:]


def test_a_family_tells_its_most_tried_and_no_more() -> None:
    tallies = [tally(f"way {number:03}", 3 + number, 0) for number in range(60)]
    records = records_of(tallies, family="norm")
    assert [record.tried for record in records] == list(range(62, 62 - MAX_RECORDS, -1))
