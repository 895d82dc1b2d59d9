"""results.parquet: a row for each search, its outcome and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kopt.data.fold import fold
from kopt.data.results import ResultRow, read_results, result_rows, write_results
from kopt.data.rundir import RunDir
from kopt.data.schema import RESULTS_SCHEMA
from kopt.errors import StoreError
from kopt.events import SearchEnded
from kopt.testing.fakes import ManualClock, MemorySink, correct, source_candidate
from kopt.testing.sample_journal import SAMPLE_PROBLEM, asked, made, reached, write_search
from kopt.verdict import Cheated, CompileFailed, Correct, Crashed, Incorrect, TimedOut, Verdict

CRASHED = Crashed(stage="timing", log="boom")
CHEATED = Cheated(check="two_clocks", detail="")
INCORRECT = Incorrect(check="values:own", detail="")
NO_END = TimedOut(stage="build", limit_s=1.0)
NOT_BUILT = CompileFailed(stage="build", log="")
BUDGET = SearchEnded(reason="budget", failed=False)


def row_of(*verdicts: Verdict, end: SearchEnded | None = BUDGET) -> ResultRow:
    """The row of a search whose expansions have two slots, with these verdicts in order."""
    sink = MemorySink()
    slots = [(source_candidate(f"c{n}"), verdict) for n, verdict in enumerate(verdicts)]
    expansions = [slots[n : n + 2] for n in range(0, len(slots), 2)]
    write_search(sink, expansions=expansions, end=end)
    (row,) = result_rows(fold(sink.records))
    return row


def test_a_row_has_the_figures_of_the_best_candidate_and_of_the_search() -> None:
    clock = ManualClock()
    sink = MemorySink(clock=clock)
    fast = correct(4.0, half_width=0.25)
    fast = Correct(timing=replace(fast.timing, compile_us=75.0, sol_us=5.0), error=fast.error)
    slots = [correct(2.0), fast, CRASHED, CHEATED]
    named = [(source_candidate(f"c{n}"), verdict) for n, verdict in enumerate(slots)]
    name = write_search(sink, arm="mcts", seed=7, expansions=[named[:2], named[2:]])
    clock.advance(12.5)
    sink.append(name, BUDGET)
    assert result_rows(fold(sink.records)) == [
        {
            "problem": SAMPLE_PROBLEM.problem_id,
            "problem_name": "sample/sum",
            "arm": "mcts",
            "seed": 7,
            "policy": "best_of_n",
            "programmer": "scripted",
            "ladder": "strict",
            "device": "cpu",
            "outcome": "optimized",
            "root_cause": None,
            "speedup": 4.0,
            "speedup_lo": 3.0,
            "speedup_hi": 5.0,
            "speedup_eager": 4.0,  # 100 us / 25 us
            "speedup_compile": 3.0,  # 75 us / 25 us
            "speedup_given": None,
            "best_candidate": source_candidate("c1").candidate_id,
            "baseline_us": 100.0,
            "time_us": 25.0,
            "sol_share": 0.2,  # 5 us / 25 us
            "degenerate": False,
            "candidates": 4,
            "correct": 2,
            "cheated": 1,
            "cached": 0,
            "iterations": 2,
            "wall_s": 12.5,
            "gpu_s": 3.0,  # 4 x (0.25 s verified + 0.5 s timed)
            "candidates_per_gpu_hour": 4800.0,  # 4 in 3 s
            "tokens_in": 200,
            "tokens_out": 20,
            "cost_usd": 1.0,
            "answers": 2,
            "answers_faulty": 1,
        }
    ]


@pytest.mark.parametrize(
    ("verdicts", "outcome", "root_cause"),
    [
        ([correct(1.02)], "optimized", None),
        ([correct(1.01)], "matched", "no_improvement"),  # must be above 1.01
        ([correct(1.5, half_width=0.4)], "matched", "no_improvement"),  # its interval holds 1
        ([correct(0.5)], "matched", "performance_regression"),  # all of its interval is below 1
        ([CRASHED, CRASHED, INCORRECT], "unsolved", "crash"),
        ([INCORRECT, CHEATED], "unsolved", "correctness"),
        ([NO_END], "unsolved", "timeout"),
        ([NOT_BUILT], "unsolved", "compile"),
        ([], "unsolved", "no_candidate"),
    ],
)
def test_the_outcome_and_its_cause(
    verdicts: list[Verdict], outcome: str, root_cause: str | None
) -> None:
    row = row_of(*verdicts)
    assert (row["outcome"], row["root_cause"]) == (outcome, root_cause)


def test_a_failed_search_says_why() -> None:
    failed = SearchEnded(reason="failed: problem x: no Model", failed=True)
    assert row_of(end=failed)["root_cause"] == "failed: problem x: no Model"


def test_a_search_without_a_correct_candidate_has_no_figures_rather_than_zeros() -> None:
    row = row_of(CRASHED)
    figures = ("speedup", "speedup_lo", "speedup_eager", "best_candidate", "time_us", "sol_share")
    assert {row[name] for name in figures} == {None}  # type: ignore[literal-required]


def test_the_earliest_of_equally_fast_candidates_is_the_best() -> None:
    row = row_of(correct(2.0), correct(2.0))
    assert row["best_candidate"] == source_candidate("c0").candidate_id


def test_a_cached_verdict_costs_no_device_time() -> None:
    sink = MemorySink()
    candidate = source_candidate("c")
    name = write_search(sink, expansions=[[(candidate, correct(2.0))]])
    sink.append(name, asked(1, num_candidates=1))
    sink.append(name, made(candidate, expansion=1, index=0))
    again = reached(
        candidate, correct(2.0), problem=SAMPLE_PROBLEM, expansion=1, index=0, cached=True
    )
    sink.append(name, again)
    (row,) = result_rows(fold(sink.records))
    assert (row["candidates"], row["gpu_s"], row["iterations"]) == (2, 0.75, 1)


def test_the_file_gives_its_rows_back(tmp_path: Path) -> None:
    sink = MemorySink()
    write_search(sink, seed=0, expansions=[[(source_candidate("a"), correct(2.0))]])
    write_search(sink, seed=1, expansions=[[(source_candidate("b"), CRASHED)]])
    run = RunDir(tmp_path)
    rows = write_results(run, fold(sink.records))
    assert [row["seed"] for row in rows] == [0, 1]
    assert read_results(run.results_path) == rows
    assert pq.read_schema(run.results_path).equals(RESULTS_SCHEMA, check_metadata=False)
    assert [path.name for path in tmp_path.iterdir()] == ["results.parquet"]


def test_a_file_of_an_earlier_version_is_read_its_newer_columns_null(tmp_path: Path) -> None:
    sink = MemorySink()
    write_search(sink, expansions=[[(source_candidate("a"), correct(2.0))]])
    run = RunDir(tmp_path)
    (row,) = write_results(run, fold(sink.records))
    older = pq.read_table(run.results_path).drop_columns(["candidates_per_gpu_hour"])
    pq.write_table(older, run.results_path)
    assert read_results(run.results_path) == [{**row, "candidates_per_gpu_hour": None}]


def test_a_run_without_searches_has_an_empty_table(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    write_results(run, fold([]))
    assert read_results(run.results_path) == []


def test_what_is_no_results_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_bytes(b"nothing")
    with pytest.raises(StoreError, match="not a results file"):
        read_results(path)


def test_units_are_in_the_schema() -> None:
    assert (RESULTS_SCHEMA.field("time_us").metadata or {})[b"unit"] == b"us"
    assert not RESULTS_SCHEMA.field("outcome").nullable
    assert RESULTS_SCHEMA.field("speedup").nullable
