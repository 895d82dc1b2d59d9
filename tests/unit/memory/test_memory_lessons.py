"""Lessons by rule, entries and what was tried: every sentence from a verdict, a fault or a call."""

from __future__ import annotations

import pytest

from kopt.candidate import Candidate
from kopt.memory.entry import MAX_NEW, MAX_TEXT, entry_of, fresh
from kopt.memory.iteration import Iteration
from kopt.memory.lessons import lessons_of
from kopt.memory.tried import Tried, tried_of
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of
from kopt.verdict import CompileFailed, Incorrect, Verdict

PROBLEM = Problem(name="p", source="class Model: ...\n")
WRONG = Incorrect(check="values:own#0", detail="expected 1, found 2")


def tried(
    verdict: Verdict, *, parent: Verdict | None = None, strategy: str = "fuse the epilogue"
) -> Tried:
    def judged(source: str, verdict: Verdict):
        candidate = Candidate(source=source, language="triton")
        return evaluation_of(verdict, problem=PROBLEM, candidate=candidate)

    return tried_of(
        judged("child", verdict),
        parent=None if parent is None else "parent",
        expansion=3,
        strategy=strategy,
        parent_evaluation=None if parent is None else judged("parent", parent),
    )


def lessons(*items: Tried, before: tuple[Tried, ...] = (), **iteration) -> list[tuple[str, str]]:
    made = Iteration(expansion=3, mode="optimize", tried=items, **iteration)
    return [(each.heading, each.text) for each in lessons_of(made, before=before)]


def test_a_gain_is_what_the_change_did_and_a_speedup_is_against_the_baseline() -> None:
    # 3x the baseline from a parent that had 2x: the change itself gave 1.5x.
    made = tried(correct(3.0), parent=correct(2.0))
    assert (made.over, made.gain, made.improved, made.regressed) == (2.0, 1.5, True, False)
    fresh_one = tried(correct(0.5))
    assert (fresh_one.over, fresh_one.gain, fresh_one.regressed) == (1.0, 0.5, True)
    # From a version that failed there is nothing to be faster than but the baseline.
    assert tried(correct(1.5), parent=WRONG).gain == 1.5
    assert tried(WRONG, parent=correct(2.0)).gain is None


@pytest.mark.parametrize(
    ("made", "heading", "text"),
    [
        (
            tried(correct(3.0), parent=correct(2.0)),
            "successful_patterns",
            "fuse the epilogue: 1.5x the speed of what it was made from, 3x the baseline's speed",
        ),
        (
            tried(correct(1.5)),
            "successful_patterns",
            "fuse the epilogue: 1.5x the baseline's speed",
        ),
        (
            tried(correct(1.0), parent=correct(2.0)),
            "errors_corrections",
            "fuse the epilogue: right, but slower (0.5x the speed of what it was made from, "
            "1x the baseline's speed)",
        ),
        (
            # The interval, 1.995 ± 1 %, holds the parent's 2.
            tried(correct(1.995), parent=correct(2.0)),
            "learnings",
            "fuse the epilogue: no difference beyond the noise (0.998x the speed of what it was "
            "made from, 2x the baseline's speed)",
        ),
        (
            tried(CompileFailed(stage="build", log="a.cpp:7: error: expected ';'")),
            "errors_corrections",
            "fuse the epilogue: does not compile (build: a.cpp:7: error: expected ';')",
        ),
        (
            tried(WRONG, strategy=""),
            "errors_corrections",
            "a version in triton without a stated strategy: is wrong (values:own#0: expected 1, "
            "found 2)",
        ),
    ],
)
def test_each_outcome_is_one_lesson_under_its_heading(made: Tried, heading: str, text: str) -> None:
    assert lessons(made) == [(heading, text)]


def test_a_repair_that_worked_says_what_had_failed() -> None:
    made = tried(correct(1.5), parent=WRONG, strategy="sum in fp32")
    assert lessons(made)[0] == (
        "errors_corrections",
        "what failed before (incorrect: values:own#0: expected 1, found 2) was mended by: "
        "sum in fp32",
    )


def test_the_third_failure_of_a_kind_is_a_lesson_of_its_own_and_the_fourth_is_not() -> None:
    two = (tried(WRONG), tried(Incorrect(check="values:own#2", detail="else")))
    other = tried(Incorrect(check="aliasing", detail="else"))
    learned = [
        text for heading, text in lessons(tried(WRONG), before=two) if heading == "learnings"
    ]
    assert learned == [
        "3 versions failed alike: incorrect at `values:own`; "
        "what they have in common is to be left or mended first"
    ]
    for now, before in ((other, two), (tried(WRONG), (*two, tried(WRONG)))):
        assert not [h for h, _ in lessons(now, before=before) if h == "learnings"]


def test_calls_with_arguments_are_findings_and_paths_are_key_files() -> None:
    calls = (
        {"name": "search", "arguments": '{"query": "wgmma atom"}', "result": "2 hits\nmore"},
        {"name": "read", "arguments": '{"path": "cute/arch/mma.hpp"}', "result": "struct MMA"},
        {"name": "occupancy", "arguments": "{}", "result": "12 %"},
        {"name": "broken", "arguments": '{"path"', "result": ""},
        {"name": "odd", "arguments": "[1]", "result": ""},
    )
    assert lessons(calls=calls, faults=("no code", "no code")) == [
        ("search_findings", "search(query=wgmma atom): 2 hits"),
        ("search_findings", "read(path=cute/arch/mma.hpp): struct MMA"),
        ("key_files", "cute/arch/mma.hpp (read by read)"),
        ("errors_corrections", "An answer held no candidate: no code"),
    ]


def test_an_entry_is_one_bounded_line() -> None:
    entry = entry_of("learnings", "a\nb\t" + "c" * 10_000)
    assert entry.text.startswith("a b ccc")
    assert len(entry.text) == MAX_TEXT
    assert entry.text.endswith("…")


def test_what_is_known_is_not_added_again_and_each_heading_takes_a_few() -> None:
    known = (entry_of("learnings", "Rows are short"),)
    many = [entry_of("learnings", f"lesson {number}") for number in range(9)]
    again = entry_of("learnings", "rows ARE short")
    other = entry_of("key_files", "rows are short")
    assert fresh([again, other, entry_of("learnings", " ")], known) == (other,)
    assert fresh([*many, other], known) == (*many[:MAX_NEW], other)
