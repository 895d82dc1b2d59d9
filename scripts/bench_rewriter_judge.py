"""The judging half of bench_rewriter.py: candidates written, then judged as `kopt run` does it."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from kopt.actors.cluster import Cluster
from kopt.actors.config import ClusterConfig, EvaluateConfig
from kopt.actors.pool import RayEvaluator
from kopt.actors.quiet import Quiet
from kopt.actors.rewriter.plan import Fold
from kopt.actors.rewriter.worker import RewriterWorker
from kopt.candidate import Candidate
from kopt.evaluation import Evaluation
from kopt.expansion import Expansion, Mode
from kopt.ports import Answer, Attempt, WriteRequest
from kopt.problem import Problem
from kopt.verdict import Correct

ROOT_SHARE = 0.6
"""Of a problem's candidates, those written from the root; the others are neighbours of the best."""


@dataclass(slots=True, kw_only=True)
class Tried:
    """What came of one problem."""

    attempts: list[Attempt] = field(default_factory=list)
    propose_ms: list[float] = field(default_factory=list)
    """Of each request, the first included."""
    note: str = ""
    """Why there is none, or none more."""
    wall_s: float = 0.0
    ends_s: float = float("inf")
    """On the monotonic clock: when no further candidate is begun."""

    def best(self, *, plain: bool = False) -> Attempt | None:
        """Return the correct candidate with the highest low end of its interval.

        Args:
            plain: leave out those that take a float32 product as three tf32 products.
        """
        correct = [a for a in self.attempts if isinstance(a.evaluation.verdict, Correct)]
        if plain:
            correct = [a for a in correct if "tf32" not in a.candidate.source]
        return max(correct, key=lambda a: _low(a.evaluation), default=None)


class Judge:
    """The rewriter, and the evaluator that judges what it writes."""

    def __init__(
        self, cluster: Cluster, *, evaluate: EvaluateConfig, cache_dir: Path, fold: Fold
    ) -> None:
        """Start the lanes."""
        self.evaluate = evaluate
        self._writer = RewriterWorker(fold=fold)
        # One at a time, while the candidates of other problems are judged.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rewriter")
        self.evaluator = RayEvaluator(
            cluster,
            config=ClusterConfig(
                devices=cluster.devices,
                build_workers=cluster.build_workers,
                in_flight=cluster.in_flight,
            ),
            evaluate=evaluate,
            cache_dir=cache_dir,
            quiet=Quiet(cluster.device),
        )

    async def write(self, request: WriteRequest) -> tuple[Answer, float]:
        """Return candidates, and the milliseconds that the rewriter took for them."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._timed, request)

    def _timed(self, request: WriteRequest) -> tuple[Answer, float]:
        began_s = time.perf_counter()
        answer = self._writer.write(request, self.evaluate.module_mode)
        return answer, 1e3 * (time.perf_counter() - began_s)

    def close(self) -> None:
        """Let the lanes go."""
        self._thread.shutdown()
        self.evaluator.close()


async def try_problem(judge: Judge, problem: Problem, *, candidates: int, budget_s: float) -> Tried:
    """Write and judge up to so many candidates: of the root, then of the best of those.

    Args:
        judge: writes and judges.
        problem: to try.
        candidates: at most.
        budget_s: wall time after which no further one is begun.
    """
    began_s = time.monotonic()
    tried = Tried(ends_s=began_s + budget_s)
    of_root = max(1, round(candidates * ROOT_SHARE))
    await _expand(judge, problem, tried, parent=None, limit=of_root)
    best = tried.best()
    if best is not None:
        await _expand(judge, problem, tried, parent=best, limit=candidates)
    await _expand(judge, problem, tried, parent=None, limit=candidates)
    tried.wall_s = time.monotonic() - began_s
    return tried


async def _expand(
    judge: Judge, problem: Problem, tried: Tried, *, parent: Attempt | None, limit: int
) -> None:
    """Judge candidates of a node in order, each once, until the problem has had so many."""
    known = {attempt.candidate.candidate_id for attempt in tried.attempts}
    target = await judge.evaluator.target()
    mode: Mode = "initial" if parent is None else "optimize"
    for slot in range(2 * limit):
        if len(tried.attempts) >= limit or time.monotonic() > tried.ends_s:
            return
        expansion = Expansion(
            ordinal=0,
            parent_node=0 if parent is None else 1,
            parent=None if parent is None else parent.candidate.candidate_id,
            mode=mode,
            num_candidates=1,
            first_child=slot,
            seed=0,
        )
        request = WriteRequest(
            problem=problem,
            target=target,
            search="bench",
            arm="bench",
            seed=0,
            expansion=expansion,
            parent=parent,
        )
        answer, took_ms = await judge.write(request)
        tried.propose_ms.append(took_ms)
        tried.note = answer.note or tried.note
        for candidate in answer.candidates:
            if candidate.candidate_id not in known:
                known.add(candidate.candidate_id)
                tried.attempts.append(await _judged(judge, problem, candidate))
        if answer.exhausted:
            return


async def _judged(judge: Judge, problem: Problem, candidate: Candidate) -> Attempt:
    evaluation = await judge.evaluator.evaluate(problem, candidate)
    return Attempt(candidate=candidate, evaluation=evaluation)


def _low(evaluation: Evaluation) -> float:
    assert isinstance(evaluation.verdict, Correct)
    return evaluation.verdict.timing.speedup_ci[0]
