"""Verdicts that an evaluator had already: the journal and the results say so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kopt.candidate import Candidate
from kopt.data.journal import read_events
from kopt.data.results import result_rows
from kopt.evaluation import CACHED_CHECK, Check, Evaluation
from kopt.events import VerdictReached
from kopt.problem import Problem
from kopt.search.config import BestOfNConfig
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer
from kopt.testing.small_fleet import run_in_folder, small_tasks


class EverySecondKnown(InstantEvaluator):
    """Hands every second evaluation on, as a cache does."""

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        evaluation = await super().evaluate(problem, candidate)
        if len(self.calls) % 2:
            return evaluation
        check = Check(name=CACHED_CHECK, passed=True, detail="judged 2026-01-01T00:00:00Z")
        return replace(
            evaluation, checks=(*evaluation.checks, check), timeline_s={CACHED_CHECK: 0.01}
        )


def test_a_verdict_from_the_cache_is_journalled_and_counted_as_such(tmp_path: Path):
    config = BestOfNConfig(iterations=4, candidates=2)
    state = run_in_folder(
        tmp_path,
        small_tasks(config),
        programmer=ScriptedProgrammer(),
        evaluator=EverySecondKnown(),
    )
    flags = [r.body.cached for r in read_events(tmp_path) if isinstance(r.body, VerdictReached)]
    assert flags == [False, True] * 4
    (row,) = result_rows(state)
    assert (row["candidates"], row["cached"]) == (8, 4)
    assert row["gpu_s"] == 4 * 0.75  # 0.25 s verified and 0.5 s timed, of those that were run
