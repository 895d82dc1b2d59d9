"""An arm that is added to a sweep: what the earlier arms had judged is not judged again."""

from __future__ import annotations

from pathlib import Path

from kopt.actors.cache.store import Store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.config import EvaluateConfig
from kopt.candidate import Candidate
from kopt.ports import Answer, Target, WriteRequest
from kopt.search.config import BestOfNConfig
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer, correct
from kopt.testing.small_fleet import SMALL_TARGET, run_in_folder, small_problem, small_tasks

PROBLEMS = [small_problem("set/one"), small_problem("set/two")]
SHORT = BestOfNConfig(iterations=4, candidates=2)
LONG = BestOfNConfig(iterations=6, candidates=2)


class Judge(InstantEvaluator):
    """Judges at once, and says what it judges on."""

    def __init__(self) -> None:
        super().__init__(lambda *_: correct(2.0))

    async def target(self) -> Target:
        return SMALL_TARGET


def same_ideas(request: WriteRequest) -> Answer:
    """Idea n of a problem, whatever the arm."""
    first = request.expansion.first_child
    numbers = range(first, first + request.expansion.num_candidates)
    return Answer(
        candidates=tuple(
            Candidate(source=f"class ModelNew:\n    x = {n}\n", language="torch") for n in numbers
        )
    )


async def facts(device: str) -> list[dict[str, str]]:
    return [{"sandbox": "process+user", "driver": device}]


def judged(folder: Path, cache: Path, arms: dict[str, BestOfNConfig]) -> int:
    """Run a sweep; return how many candidates were really judged."""
    judge = Judge()
    evaluator = CachedEvaluator(
        judge,
        config=EvaluateConfig(),
        store=Store(root=cache, kind="verdict", max_bytes=1 << 20, least_free_bytes=0),
        facts=facts,
    )
    tasks = [
        task
        for arm, config in arms.items()
        for task in small_tasks(config, problems=PROBLEMS, arm=arm)
    ]
    run_in_folder(folder, tasks, programmer=ScriptedProgrammer(same_ideas), evaluator=evaluator)
    return len(judge.calls)


def test_an_added_arm_has_only_its_own_ideas_judged(tmp_path: Path) -> None:
    # Two problems x 4 x 2 ideas; the added arm goes on for 2 x 2 more on each.
    assert judged(tmp_path / "first", tmp_path / "cache", {"a": SHORT}) == 16
    assert judged(tmp_path / "again", tmp_path / "cache", {"a": SHORT}) == 0
    assert judged(tmp_path / "added", tmp_path / "cache", {"a": SHORT, "b": LONG}) == 8
