"""Results: a row for each search, from the fold, and `results.parquet`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import TypedDict

from kopt.candidate import SEED_PROGRAMMER
from kopt.data.atomic import replacing
from kopt.data.fold import ExpansionState, RunState, SearchState
from kopt.data.rundir import RunDir
from kopt.data.schema import RESULTS_SCHEMA
from kopt.errors import StoreError
from kopt.evaluation import EvalJson, rank
from kopt.events import AnswerReceived, MemoryUpdated, ProfileAnalysed, SearchEnded
from kopt.verdict import VerdictKind

Outcome = Literal["optimized", "matched", "synthesis_failed", "fallback", "unsolved"]

OPTIMIZED_SPEEDUP = 1.01
"""A search counts as optimized above this, its interval above 1 (DESIGN §8)."""

DEVICE_STAGES = ("verified", "timed", "profiled")
"""Stages of `timeline_s` that hold the device."""

ADDED = {"candidates_per_gpu_hour", "cached", "speedup_given"}
"""Columns that files of earlier versions lack; null there."""

_CAUSES: dict[VerdictKind, str] = {
    "compile_failed": "compile",
    "crashed": "crash",
    "timed_out": "timeout",
    "incorrect": "correctness",
    "cheated": "correctness",
}
"""Why a search is unsolved, by the commonest kind of its verdicts."""


class ResultRow(TypedDict):
    """A row of results.parquet: one search (CONTRACTS.md)."""

    problem: str
    """Problem id (sha256)."""
    problem_name: str
    arm: str
    seed: int
    policy: str
    programmer: str | None
    """Of its first candidate that was no seed; null where there is none."""
    ladder: str | None
    """Of its verdicts; null where there is none. So is `device`."""
    device: str | None
    outcome: Outcome
    root_cause: str | None
    """Why it is not `optimized`, in a word, or how it failed; null where it is."""
    speedup: float | None
    """Of the best candidate; null, with all that is of it, where none is correct."""
    speedup_lo: float | None
    speedup_hi: float | None
    speedup_eager: float | None
    speedup_compile: float | None
    speedup_given: float | None
    """Over the kernel that the problem comes with; null where there is none, or it failed."""
    best_candidate: str | None
    baseline_us: float | None
    time_us: float | None
    sol_share: float | None
    degenerate: bool
    candidates: int
    """Verdicts reached, those known before included."""
    correct: int
    cheated: int
    cached: int | None
    """Verdicts that were known before, of this run or of an earlier one: nothing was run."""
    iterations: int
    """Expansions of which the tree heard."""
    wall_s: float
    """From the first event of the search to its last."""
    gpu_s: float
    """Seconds of the device for verifying, timing and profiling; of the CPU where that is it."""
    candidates_per_gpu_hour: float | None
    """Of the candidates that were run, to the hour of the device's time that they took; null where
    they took none. Candidates judged beside each other each count their own time."""
    tokens_in: int
    tokens_out: int
    cost_usd: float
    answers: int
    """Completions of models and people, those without a candidate included."""
    answers_faulty: int
    """Those that held no candidate."""


def result_rows(state: RunState) -> list[ResultRow]:
    """Return a row for each search, in the order started."""
    return [_row(search) for search in state.searches.values()]


def write_results(run: RunDir, state: RunState) -> list[ResultRow]:
    """Write or replace results.parquet, whole, and return its rows.

    Raises:
        StoreError: it cannot be written; an older file is as it was.
    """
    rows = result_rows(state)
    table = pa.Table.from_pylist([dict(row) for row in rows], schema=RESULTS_SCHEMA)
    with replacing(run.results_path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return rows


def read_results(path: Path | str) -> list[ResultRow]:
    """Return the rows of a results.parquet.

    Args:
        path: of the file.

    Raises:
        StoreError: it cannot be read, or lacks a column.
    """
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(str(path), f"not a results file: {error}") from error
    missing = set(RESULTS_SCHEMA.names) - set(table.column_names) - ADDED
    if missing:
        raise StoreError(str(path), f"not a results file: it lacks {', '.join(sorted(missing))}")
    rows = [{**dict.fromkeys(ADDED), **row} for row in table.to_pylist()]
    return [cast("ResultRow", {name: row[name] for name in RESULTS_SCHEMA.names}) for row in rows]


def best_slot(search: SearchState) -> tuple[ExpansionState, int] | None:
    """Return the slot of the best correct candidate by `rank`; the earliest of equals; None."""
    best: tuple[ExpansionState, int] | None = None
    highest = (float("-inf"), float("-inf"))
    for expansion, index, evaluation in _verdicts(search):
        if rank(evaluation) > highest:
            best, highest = (expansion, index), rank(evaluation)
    return best


def outcome_of(best: EvalJson | None) -> Outcome:
    """Return how a search came out by its best correct candidate's evaluation; None: none is."""
    if best is None:
        return "unsolved"
    speedup, interval = best["speedup"] or 0.0, best["speedup_ci"] or (0.0, 0.0)
    return "optimized" if speedup > OPTIMIZED_SPEEDUP and interval[0] > 1.0 else "matched"


def root_cause_of(
    ended: SearchEnded | None,
    *,
    outcome: Outcome,
    best: EvalJson | None,
    kinds: Counter[VerdictKind],
) -> str | None:
    """Return why a search is not `optimized`, in a word, or how it failed; None where it is.

    Args:
        ended: its end; None while it runs.
        outcome: `outcome_of` its best.
        best: evaluation of its best correct candidate; None: none is.
        kinds: of its verdicts.
    """
    if outcome == "optimized":
        return None
    if ended is not None and ended.failed:
        return ended.reason
    if best is not None:
        interval = best["speedup_ci"]
        is_slower = interval is not None and interval[1] < 1.0
        return "performance_regression" if is_slower else "no_improvement"
    if not kinds:
        why = "" if ended is None else ended.reason.partition(": ")[2]
        return f"no_candidate: {why}" if why else "no_candidate"
    ((kind, _),) = kinds.most_common(1)
    return _CAUSES[kind]


def _row(search: SearchState) -> ResultRow:
    started = search.started
    evaluations = [evaluation for _, _, evaluation in _verdicts(search)]
    kinds = Counter(evaluation["kind"] for evaluation in evaluations)
    slot = best_slot(search)
    best = None if slot is None else slot[0].verdicts[slot[1]]
    outcome = outcome_of(best)
    answers = [
        answer for expansion in search.expansions.values() for answer in expansion.answers.values()
    ]
    # What a model said of profiles, or for the memory, costs as its answers do; it is no answer.
    paid: list[AnswerReceived | ProfileAnalysed | MemoryUpdated] = [*answers, *search.memory]
    paid += [p.analysis for p in search.profiles.values() if p.analysis is not None]
    low, high = (None, None) if best is None else best["speedup_ci"] or (None, None)
    return {
        "problem": started.problem,
        "problem_name": started.problem_name,
        "arm": started.arm,
        "seed": started.seed,
        "policy": started.policy,
        "programmer": _programmer(search),
        "ladder": evaluations[0]["ladder"] if evaluations else None,
        "device": evaluations[0]["device"] if evaluations else None,
        "outcome": outcome,
        "root_cause": root_cause_of(search.ended, outcome=outcome, best=best, kinds=kinds),
        "speedup": None if best is None else best["speedup"],
        "speedup_lo": low,
        "speedup_hi": high,
        "speedup_eager": _ratio(best, "eager_us"),
        "speedup_compile": _ratio(best, "compile_us"),
        "speedup_given": _ratio(best, "given_us"),
        "best_candidate": None if best is None else best["candidate"],
        "baseline_us": None if best is None else best["baseline_us"],
        "time_us": None if best is None else best["time_us"],
        "sol_share": None if best is None else best["sol_share"],
        "degenerate": any(evaluation["degenerate"] for evaluation in evaluations),
        "candidates": len(evaluations),
        "correct": kinds["correct"],
        "cheated": kinds["cheated"],
        "cached": sum(len(expansion.cached) for expansion in search.expansions.values()),
        "iterations": sum(bool(expansion.told) for expansion in search.expansions.values()),
        "wall_s": (search.last_ns - search.first_ns) / 1e9,
        "gpu_s": _device_seconds(search),
        "candidates_per_gpu_hour": _per_hour(search),
        "tokens_in": sum(each.tokens_in for each in paid),
        "tokens_out": sum(each.tokens_out for each in paid),
        "cost_usd": float(sum(each.cost_usd for each in paid)),
        "answers": sum(answer.text is not None or bool(answer.fault) for answer in answers),
        "answers_faulty": sum(bool(answer.fault) for answer in answers),
    }


def _verdicts(search: SearchState) -> Iterator[tuple[ExpansionState, int, EvalJson]]:
    for expansion in search.expansions.values():
        for index in sorted(expansion.verdicts):
            yield expansion, index, expansion.verdicts[index]


def _programmer(search: SearchState) -> str | None:
    for expansion in search.expansions.values():
        for made in expansion.candidates.values():
            if made.programmer != SEED_PROGRAMMER:
                return made.programmer
    return None


def _ratio(
    best: EvalJson | None, baseline: Literal["eager_us", "compile_us", "given_us"]
) -> float | None:
    if best is None or best.get(baseline) is None or not best["time_us"]:
        return None
    return cast("float", best[baseline]) / best["time_us"]


def _per_hour(search: SearchState) -> float | None:
    seconds = _device_seconds(search)
    live = sum(
        index not in expansion.cached
        for expansion in search.expansions.values()
        for index in expansion.verdicts
    )
    return live * 3600.0 / seconds if live and seconds > 0.0 else None


def _device_seconds(search: SearchState) -> float:
    profiled_s = sum(profile.evidence.profiled_s for profile in search.profiles.values())
    if search.reference is not None:
        profiled_s += search.reference.profiled_s
    return profiled_s + sum(
        evaluation["timeline_s"].get(stage, 0.0)
        for expansion, index, evaluation in _verdicts(search)
        if index not in expansion.cached
        for stage in DEVICE_STAGES
    )
