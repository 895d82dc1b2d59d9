"""What the closing table says of a problem without a win: why, and what to try."""

from __future__ import annotations

import pytest

from kopt.cli.nothing_found import NothingFound, nothing_found
from kopt.cli.progress import end_line
from kopt.cli.standing import SearchStanding
from kopt.data.fold import RunState, fold
from kopt.data.results import best_slot
from kopt.events import SearchEnded
from kopt.testing.fakes import MemorySink, correct, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import CompileFailed, Crashed, Incorrect, TimedOut, Verdict


def state_of(*verdicts: Verdict, reason: str | None = "budget") -> RunState:
    sink = MemorySink()
    slots = [
        [(source_candidate(f"# {number}"), verdict)] for number, verdict in enumerate(verdicts)
    ]
    end = None if reason is None else SearchEnded(reason=reason, failed=False)
    write_search(sink, expansions=slots, end=end)
    return fold(sink.records)


def said_of(*verdicts: Verdict, reason: str | None = "budget") -> NothingFound:
    searches = list(state_of(*verdicts, reason=reason).searches.items())
    slot = best_slot(searches[0][1])
    best = None if slot is None else slot[0].verdicts[slot[1]]
    return nothing_found(searches, best=best, run="runs/x")


def test_kernels_that_are_no_faster_are_counted_with_the_best_one() -> None:
    said = said_of(correct(1.0), Crashed(stage="run", log="boom"), correct(0.9))
    assert said.why.startswith("2 of 3 candidates are right, none surely faster: the fastest")
    assert "1.00x" in said.why
    assert said.tries[0].startswith("more candidates: kopt resume runs/x search.iterations=")
    assert "search.seeds=[my_kernel.py]" in said.tries[-1]


@pytest.mark.parametrize(
    ("verdict", "why", "proposal"),
    [
        (CompileFailed(stage="build", log="error: no ';'"), "2 compile_failed", "kopt doctor"),
        (Incorrect(check="values", detail="max error 3"), "2 incorrect", "evaluate=tf32"),
        (TimedOut(stage="timing", limit_s=60.0), "2 timed_out", "evaluate.timeouts"),
        (Crashed(stage="run", log="boom"), "2 crashed", "kopt watch runs/x --search"),
    ],
)
def test_failures_are_counted_with_the_last_one_s_words(
    verdict: Verdict, why: str, proposal: str
) -> None:
    said = said_of(verdict, verdict)
    assert said.why.startswith(f"none of 2 candidates is right ({why}); the last said: ")
    assert any(proposal in line for line in said.tries)
    assert "\n" not in said.why


def test_a_search_without_a_candidate_gives_the_programmer_s_reason() -> None:
    said = said_of(reason="exhausted: not rewritable: it draws random numbers")
    assert said.why == "no candidate was written: not rewritable: it draws random numbers"
    assert said.tries[0].startswith("another author: programmer=openai")


def test_a_limit_that_ended_it_can_be_raised() -> None:
    said = said_of(correct(1.0), reason="limits.wall_s=70")
    assert said.tries[0] == "more of what ended it: kopt resume runs/x limits.wall_s=MORE"


def test_of_a_search_that_has_not_ended_nothing_is_said() -> None:
    assert said_of(correct(1.0), reason=None) == NothingFound(why="", tries=())


def test_a_reason_of_many_lines_is_cut_to_one() -> None:
    said = said_of(CompileFailed(stage="build", log="x" * 10_000))
    assert len(said.why) < 300


def test_the_line_at_a_search_s_end_says_why_there_is_nothing() -> None:
    ended = SearchStanding(problem="set/a", ended="limits.wall_s=70")
    assert end_line("set/a/arm/0", ended, None) == (
        "set/a/arm/0: no correct candidate (limits.wall_s=70); 0 candidates, 0 correct"
    )
