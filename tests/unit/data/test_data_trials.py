"""Trials: what statistics read of a run folder, and what of it is not as in a whole run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.analysis.trial import Energy, Lead, Turn
from kopt.candidate import Candidate
from kopt.config import load, to_plain
from kopt.data.evidence_json import evidence_to_json
from kopt.data.fold import fold
from kopt.data.journal import Journal
from kopt.data.journal_files import read_events
from kopt.data.lock import RunLock
from kopt.data.manifest import make_manifest
from kopt.data.results import result_rows
from kopt.data.rundir import RunDir
from kopt.data.search_digest import speedup_of
from kopt.data.trials import RunTrials, read_trials
from kopt.errors import ConfigError, StoreError
from kopt.evaluation import EvalJson, to_json
from kopt.events import (
    AnswerReceived,
    EventBody,
    EvidenceTaken,
    ExpansionAsked,
    FindingsMade,
    RunEnded,
    SearchEnded,
    Told,
)
from kopt.evidence import Energy as CallEnergy
from kopt.evidence import Evidence, Roofline
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, evaluation_of, source_candidate
from kopt.testing.sample_journal import asked, made, reached, started, write_search
from kopt.verdict import CompileFailed, Correct, Incorrect, Verdict

PROBLEM = Problem(name="mine/sum", source="class Model: ...\n", family="reduction")
BUDGET = SearchEnded(reason="budget", failed=False)
WRONG = Incorrect(check="values", detail="no")
NOT_BUILT = CompileFailed(stage="build", log="")
NAME = f"{PROBLEM.name}/arm/0"


def run_folder(tmp_path: Path, **config: Any) -> RunDir:
    run = RunDir(tmp_path / "first")
    run.path.mkdir()
    run.keep_problem(PROBLEM)
    settings = load({"problem": PROBLEM.name, "device": "cpu", **config})
    run.write_manifest(
        make_manifest(
            to_plain(settings),
            name="first",
            created_ns=0,
            argv=["kopt"],
            device={"kind": "cpu", "name": "a CPU", "arch": "x86_64", "count": 1},
        )
    )
    return run


def journal(run: RunDir) -> Journal:
    return Journal(run.path, run="first", clock=ManualClock())


def searched(run: RunDir, *verdicts: Verdict, end: SearchEnded | None = BUDGET) -> RunTrials:
    """A run of one search whose candidates had these verdicts, one an expansion."""
    slots = [(source_candidate(f"c{n}"), verdict) for n, verdict in enumerate(verdicts)]
    with journal(run) as sink:
        write_search(sink, problem=PROBLEM, expansions=[[slot] for slot in slots], end=end)
        if end is not None:
            sink.append("", RunEnded(failed=0))
    return read_trials(run, label="first")


def test_a_trial_has_what_its_results_row_has(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    # The third is faster, and less sure: its interval begins at 1.5.
    unsure = correct(3.0, half_width=0.5)
    found = searched(run, WRONG, correct(2.0), unsure, NOT_BUILT, correct(2.5))
    (trial,), (row,) = found.trials, result_rows(fold(read_events(run.path)))
    assert (found.status, found.events) == ("ended", 28)
    assert trial.leads == (Lead(2, 2.0), Lead(5, 2.5))
    assert (trial.speedup, trial.peak) == (2.5, 3.0)
    assert trial.verdicts == {"incorrect": 1, "correct": 3, "compile_failed": 1}
    assert (trial.problem, trial.family) == (PROBLEM.problem_id, "reduction")
    for field in ("speedup", "outcome", "root_cause", "candidates", "cached", "arm", "seed"):
        assert getattr(trial, field) == row[field], field  # type: ignore[literal-required]
    for field in ("tokens_in", "tokens_out", "cost_usd", "wall_s"):
        assert getattr(trial, field) == row[field], field  # type: ignore[literal-required]
    assert trial.device_s == row["gpu_s"]


def test_terms_are_of_verdicts_and_of_the_configuration(tmp_path: Path) -> None:
    run = run_folder(tmp_path, evaluate={"compile": False, "module_mode": "eval"})
    (trial,) = searched(run, correct(2.0)).trials
    terms = trial.terms
    assert (terms.ladder, terms.device, terms.track) == ("strict", "cpu (a CPU)", "anything")
    assert (terms.baseline, terms.protocol, terms.module_mode) == ("eager", "abba", "eval")


def test_with_compile_measured_the_baseline_is_the_faster(tmp_path: Path) -> None:
    (trial,) = searched(run_folder(tmp_path), WRONG).trials
    assert trial.terms.baseline == "the faster of eager and compile"


def test_a_search_without_a_verdict_has_the_terms_that_were_asked_for(tmp_path: Path) -> None:
    run = run_folder(tmp_path, evaluate={"ladder": "tf32"})
    (trial,) = searched(run).trials
    assert (trial.terms.ladder, trial.terms.device) == ("tf32", "cpu (a CPU)")
    assert (trial.speedup, trial.outcome, trial.candidates) == (None, "unsolved", 0)


def test_the_baseline_can_be_chosen_and_a_search_that_lacks_it_is_left_out(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    searched(run, correct(2.0))
    (trial,) = read_trials(run, label="x", over="eager").trials
    assert (trial.speedup, trial.terms.baseline) == (2.0, "eager")
    found = read_trials(run, label="x", over="compile")  # the fake measures no compile
    assert found.trials == []
    assert found.remarks == [
        "1 search(es) have correct candidates without a speed-up over compile: left out"
    ]


@pytest.mark.parametrize("bad", [None, 0.0, -1.0, float("inf"), float("nan")])
def test_a_speedup_that_is_no_positive_number_is_unknown(bad: float | None) -> None:
    evaluation = evaluation_of(correct(2.0), problem=PROBLEM, candidate=source_candidate("c"))
    record: EvalJson = {**to_json(evaluation), "speedup": bad}
    assert speedup_of(record, over="recorded") is None


def test_turns_hold_the_tools_the_class_and_the_gain(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    first, second, third = (source_candidate(f"c{n}") for n in range(3))
    with journal(run) as sink:
        ref = sink.put_text(json.dumps(evidence_to_json(profile("memory", millijoules=2.0))))
        fast = sink.put_text(json.dumps(evidence_to_json(profile("compute", millijoules=1.0))))
        reference = sink.put_text(json.dumps(evidence_to_json(profile(None, millijoules=4.0))))
        sink.append(NAME, started(PROBLEM, arm="arm", seed=0))
        told(sink, first, correct(1.5), expansion=0)
        sink.append(NAME, taken(first, ref, expansion=0))
        sink.append(NAME, replace(taken(first, reference, expansion=0), is_reference=True))
        sink.append(NAME, findings(first, "vectorization", "occupancy_limiter", "vectorization"))
        told(sink, second, correct(3.0), expansion=1, parent=first)  # 2x its parent
        sink.append(NAME, taken(second, fast, expansion=1))
        told(sink, third, WRONG, expansion=2, parent=second)
        sink.append(NAME, replace(asked(3, num_candidates=1), parent=second.candidate_id))
        sink.append(NAME, BUDGET)
    (trial,) = read_trials(run, label="first").trials
    assert trial.turns == (
        Turn(tools=("vectorization", "occupancy_limiter"), bottleneck="memory", gain=2.0),
        Turn(tools=(), bottleneck="compute", gain=None),
    )  # the first has no parent; nobody answered the last
    assert trial.energy == Energy(measured=4.0, proxy=None)


def test_a_reactive_author_saw_only_what_it_called(tmp_path: Path) -> None:
    run = run_folder(
        tmp_path,
        findings={"orchestration": "reactive"},
        programmer={"kind": "openai", "model": "m", "base_url": "http://localhost:1/v1"},
    )
    first, second = source_candidate("a"), source_candidate("b")
    with journal(run) as sink:
        sink.append(NAME, started(PROBLEM, arm="arm", seed=0))
        told(sink, first, correct(1.0), expansion=0)
        sink.append(NAME, taken(first, sink.put_text("{}"), expansion=0))
        sink.append(NAME, findings(first, "vectorization", "warp_stall"))
        calls = [{"name": "warp_stall", "arguments": {}}, {"name": "sol_reached", "arguments": {}}]
        told(sink, second, correct(1.2), expansion=1, parent=first, calls=calls)
    found = read_trials(run, label="first")
    assert [turn.tools for turn in found.trials[0].turns] == [("warp_stall",)]
    assert found.remarks == ["1 profile(s) cannot be read: their class and energy are unknown"]


def test_a_run_that_was_killed_or_goes_on_says_so(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    assert searched(run, correct(2.0), end=None).status == "interrupted"
    (trial,) = read_trials(run, label="first").trials
    assert not trial.ended
    lock = RunLock(run.path)
    try:
        assert read_trials(run, label="first").status == "running"
    finally:
        lock.release()


def test_a_search_that_failed_says_why(tmp_path: Path) -> None:
    end = SearchEnded(reason="failed: no device", failed=True)
    (trial,) = searched(run_folder(tmp_path), end=end).trials
    assert trial.failure == "failed: no device"


def test_a_problem_that_a_lint_tagged_is_degenerate_without_a_verdict(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    run.keep_problem(replace(PROBLEM, degenerate="its output is constant"))
    (trial,) = searched(run).trials
    assert trial.degenerate


def test_a_run_of_another_version_is_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    searched(run, WRONG)
    run.write_manifest({**run.read_manifest(), "schema": 99})
    with pytest.raises(ConfigError, match="expected a run of schema 1, found 99"):
        read_trials(run, label="first")


def test_a_journal_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    with journal(run) as sink:
        sink.append("unknown", BUDGET)
    with pytest.raises(StoreError, match="seq 0: search_ended: search 'unknown' was not started"):
        read_trials(run, label="first")


def test_a_run_folder_without_events_has_no_trials(tmp_path: Path) -> None:
    run = run_folder(tmp_path)
    (run.path / "journal").mkdir()
    found = read_trials(run, label="first")
    assert (found.trials, found.events, found.status) == ([], 0, "interrupted")


def profile(bottleneck: Any, *, millijoules: float) -> Evidence:
    return Evidence(
        device="a CPU",
        arch="x86_64",
        level="timeline",
        roofline=Roofline(bottleneck=bottleneck),
        energy=CallEnergy(millijoules=millijoules),
    )


def taken(candidate: Candidate, ref: str, *, expansion: int) -> EvidenceTaken:
    return EvidenceTaken(
        candidate=candidate.candidate_id,
        expansion=expansion,
        index=0,
        ref=ref,
        level="timeline",
        reason="",
        cached=False,
        profiled_s=0.0,
    )


def findings(candidate: Candidate, *tools: str) -> FindingsMade:
    return FindingsMade(
        candidate=candidate.candidate_id,
        expansion=0,
        index=0,
        findings=[{"tool": tool} for tool in tools],
        left_out=0,
        remarks=[],
        energy_notes=[],
        silent=[],
    )


def told(
    sink: Journal,
    candidate: Candidate,
    verdict: Verdict,
    *,
    expansion: int,
    parent: Candidate | None = None,
    calls: list[dict[str, Any]] | None = None,
) -> None:
    """Write an expansion of one slot."""
    ask: ExpansionAsked = asked(expansion, num_candidates=1)
    if parent is not None:
        ask = replace(ask, parent=parent.candidate_id, mode="optimize")
    answer = AnswerReceived(
        expansion=expansion,
        index=0,
        candidates=1,
        answer=sink.put_text("{}"),
        text=None,
        tool_calls=calls or [],
        tokens_in=0,
        tokens_out=0,
        cost_usd=0.0,
        exhausted=False,
        note="",
    )
    reward = 1.0 if isinstance(verdict, Correct) else -2.0
    events: list[EventBody] = [
        ask,
        answer,
        made(candidate, expansion=expansion, index=0),
        reached(candidate, verdict, problem=PROBLEM, expansion=expansion, index=0),
        Told(expansion=expansion, index=0, node=expansion + 1, reward=reward),
    ]
    for event in events:
        sink.append(NAME, event)
