"""A run folder for tests of whatever reads one: two arms, trees, every kind of verdict, evidence.

Written event by event as a driver writes it, so that every number in it is known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kopt.candidate import Candidate
from kopt.config import load, to_plain
from kopt.data.evidence_json import evidence_to_json
from kopt.data.journal import Journal
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.events import (
    AnswerReceived,
    EvidenceTaken,
    ExpansionAsked,
    FindingsMade,
    PromptSent,
    RunEnded,
    SearchEnded,
    Told,
)
from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.expansion import Mode
from kopt.ports import EventSink
from kopt.problem import Problem
from kopt.reward import RewardRule, reward
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import made, reached, started
from kopt.verdict import Cheated, CompileFailed, Crashed, Incorrect, TimedOut, Verdict

SAMPLE_ARMS: dict[str, tuple[float | None, ...]] = {
    "mcts-openai": (4.0, 2.0, 1.5, 1.25, 1.005, None),
    "greedy-openai": (2.0, 1.6, 1.2, 1.005, 1.005, None),
}
"""Arm to the best speed-up of its search of each problem; None: no candidate is correct."""
SAMPLE_EVIDENCE = Evidence(
    device="a GPU",
    arch="sm_90",
    level="ncu",
    time_us=50.0,
    kernels=(
        KernelEvidence(
            name="rows", owner="user", launches=1, time_us=48.0, share=0.96, registers=40
        ),
    ),
    timeline=Timeline(e2e_us=52.0, busy_us=48.0, launches=1, gaps_us=(3.0,), syncs=0, sync_us=0.0),
    # 1e9 FLOP, 1e8 bytes, ridge 20: memory binds, at 1e8 / 25 us = 4e12 bytes a second.
    roofline=Roofline(
        flops=1e9,
        bytes=1e8,
        intensity=10.0,
        ridge=20.0,
        theoretical="memory",
        measured="memory",
        bottleneck="memory",
        confidence="high",
        sol_us=25.0,
        reachable_us=30.0,
        precision="fp32",
    ),
)
SAMPLE_FINDING = {
    "tool": "uncoalesced",
    "severity": "high",
    "title": "Uncoalesced loads",
    "summary": "Each request reaches 32 sectors.",
    "root_cause": "Neighbouring threads read far apart.",
    "recommendations": ["Let neighbours read neighbours."],
    "expected_improvement": "up to 2x",
    "observed": {"sectors": 32.0},
    "thresholds": {},
    "code_example": None,
    "kernel": "rows",
}
FAILURES: tuple[Verdict, ...] = (
    Incorrect(check="values", detail="max error 3"),
    CompileFailed(stage="build", log="error: expected ';'"),
    Cheated(check="timed_blocks", detail="work beside the clock"),
    Crashed(stage="verify", log="segmentation fault"),
    TimedOut(stage="timing", limit_s=60.0),
)


def write_sample_run(
    folder: Path, *, words: str = "fuse the rows", source: str = "", expansions: int = 3
) -> RunDir:
    """Write the run and return its folder.

    Every search has `expansions` of two candidates: the first of ROOT, with a failure and a
    candidate of half the best speed-up (node 2); then of node 2, the last with the best one.

    Args:
        folder: made here.
        words: strategy notes, messages, findings' summaries and answers hold them.
        source: begins every candidate's source.
        expansions: >= 2.
    """
    folder.mkdir(parents=True)
    run = RunDir(folder)
    config = load({"problem": "set/p0", "device": "cpu"})
    device = {"kind": "cpu", "name": "a CPU", "arch": "x86_64", "count": 1}
    run.write_manifest(
        make_manifest(to_plain(config), name=run.name, created_ns=0, argv=["kopt"], device=device)
    )
    clock = ManualClock()
    with Journal(run.path, run=run.name, clock=clock) as sink:
        for arm, speedups in SAMPLE_ARMS.items():
            for number, speedup in enumerate(speedups):
                problem = Problem(
                    name=f"set/p{number}",
                    source=f"class Model: ... # {number}\n",
                    degenerate="constant output" if number == len(speedups) - 2 else "",
                )
                run.keep_problem(problem)
                writer = _Search(sink, clock, problem, arm, words=words, source=source)
                writer.write(speedup, expansions=expansions)
        sink.append("", RunEnded(failed=0))
    return run


class _Search:
    def __init__(
        self,
        sink: EventSink,
        clock: ManualClock,
        problem: Problem,
        arm: str,
        *,
        words: str,
        source: str,
    ) -> None:
        self._sink, self._clock, self._problem = sink, clock, problem
        self._words, self._source = words, source
        self._name = f"{problem.name}/{arm}/0"
        self._arm = arm
        self._node = 0

    def write(self, speedup: float | None, *, expansions: int) -> None:
        self._sink.append(self._name, started(self._problem, arm=self._arm, seed=0))
        half = None if speedup is None else speedup / 2.0
        parent = self._expand(0, 0, None, self._verdicts(half, 0))[-1]
        for ordinal in range(1, expansions):
            is_last = ordinal == expansions - 1
            self._expand(ordinal, 2, parent, self._verdicts(speedup if is_last else half, ordinal))
        self._sink.append(self._name, SearchEnded(reason="budget", failed=False))

    def _verdicts(self, speedup: float | None, ordinal: int) -> tuple[Verdict, Verdict]:
        failure = FAILURES[ordinal % len(FAILURES)]
        return failure, Incorrect(check="values", detail="no") if speedup is None else correct(
            speedup
        )

    def _expand(
        self, ordinal: int, node: int, parent: Candidate | None, verdicts: Sequence[Verdict]
    ) -> list[Candidate]:
        sink, name = self._sink, self._name
        mode: Mode = "initial" if parent is None else "optimize"
        sink.append(
            name,
            ExpansionAsked(
                expansion=ordinal,
                parent_node=node,
                parent=None if parent is None else parent.candidate_id,
                mode=mode,
                n=len(verdicts),
                first_child=self._node + 1,
                seed=ordinal,
            ),
        )
        messages = [["system", "You write kernels."], ["user", f"{ordinal}: {self._words}"]]
        sink.append(
            name,
            PromptSent(
                expansion=ordinal,
                messages=sink.put_text(json.dumps(messages)),
                sampling={},
                tokens=100,
            ),
        )
        sink.append(
            name,
            AnswerReceived(
                expansion=ordinal,
                index=0,
                candidates=len(verdicts),
                answer=sink.put_text("{}"),
                text=sink.put_text(self._words),
                tool_calls=[],
                tokens_in=100,
                tokens_out=10,
                cost_usd=0.5,
                exhausted=False,
                note="",
            ),
        )
        return [
            self._judge(ordinal, index, parent, verdict) for index, verdict in enumerate(verdicts)
        ]

    def _judge(
        self, ordinal: int, index: int, parent: Candidate | None, verdict: Verdict
    ) -> Candidate:
        sink, name = self._sink, self._name
        self._node += 1
        self._clock.advance(30.0)
        candidate = source_candidate(
            f"{self._source}class ModelNew:\n    node = {self._node}  # {name}\n",
            strategy=f"{self._words} ({self._node})",
            parent=None if parent is None else parent.candidate_id,
        )
        sink.put_text(candidate.source)
        sink.append(name, made(candidate, expansion=ordinal, index=index))
        sink.append(
            name,
            reached(candidate, verdict, problem=self._problem, expansion=ordinal, index=index),
        )
        if verdict.kind == "correct":
            self._profile(candidate, ordinal, index)
        value = reward(verdict, RewardRule())
        sink.append(name, Told(expansion=ordinal, index=index, node=self._node, reward=value))
        return candidate

    def _profile(self, candidate: Candidate, ordinal: int, index: int) -> None:
        text = json.dumps(evidence_to_json(SAMPLE_EVIDENCE))
        self._sink.append(
            self._name,
            EvidenceTaken(
                candidate=candidate.candidate_id,
                expansion=ordinal,
                index=index,
                ref=self._sink.put_text(text),
                level="ncu",
                reason="",
                cached=False,
                profiled_s=2.0,
            ),
        )
        self._sink.append(
            self._name,
            FindingsMade(
                candidate=candidate.candidate_id,
                expansion=ordinal,
                index=index,
                findings=[{**SAMPLE_FINDING, "summary": self._words}],
                left_out=0,
                remarks=[],
                energy_notes=[],
                silent=["occupancy"],
            ),
        )
