"""Jobs of one fleet: a driver each in one loop; they share places, limits and their arms' turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

import pytest

from kopt.candidate import Candidate
from kopt.data.fold import fold
from kopt.driver.limits import Limits, Spent
from kopt.driver.loop import Driver, Pace
from kopt.driver.table import Table
from kopt.driver.task import SearchSpec, SearchTask
from kopt.driver.turns import Turns
from kopt.errors import StoreError
from kopt.evaluation import Evaluation
from kopt.events import EventBody, ExpansionAsked
from kopt.ports import Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.search.config import BestOfNConfig
from kopt.search.searches import create_search
from kopt.testing.fakes import InstantEvaluator, ManualClock, MemorySink, ScriptedProgrammer

TARGET = Target(device="cpu", name="test", arch="x86_64", languages=("torch",))


class BrokenSink(MemorySink):
    """A journal whose disk is full after some events."""

    def append(self, search: str, body: EventBody) -> int:
        if len(self.records) > 10:
            raise StoreError("journal", "no space left on device")
        return super().append(search, body)


class CountingEvaluator(InstantEvaluator):
    """Counts how many candidates are being judged at once over all jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return await super().evaluate(problem, candidate)


def tasks(arm: str, *, searches: int, iterations: int) -> list[SearchTask]:
    config = BestOfNConfig(iterations=iterations, candidates=2)
    return [
        SearchTask(
            spec=SearchSpec(
                problem=Problem(name=f"set/{number}", source=f"# {number}"),
                arm=arm,
                seed=0,
                policy=config.kind,
                policy_config={"search": config.model_dump(), "reward": asdict(RewardRule())},
            ),
            tree=create_search(config, rule=RewardRule(), seed=0),
        )
        for number in range(searches)
    ]


def run_jobs(
    jobs: Sequence[tuple[str, list[SearchTask], MemorySink]],
    *,
    places: int = 2,
    limits: Limits | None = None,
    priorities: Sequence[int] = (),
    evaluator: InstantEvaluator | None = None,
) -> list[int | BaseException]:
    turns, bounded = Turns(places=places), Spent()
    evaluator = evaluator or InstantEvaluator()

    async def together() -> list[int | BaseException]:
        drivers = [
            Driver(
                job,
                programmer=ScriptedProgrammer(),
                evaluator=evaluator,
                sink=sink,
                clock=ManualClock(),
                target=TARGET,
                pace=Pace(max_in_flight=places),
                limits=limits,
                table=Table(
                    turns=turns,
                    arm=arm,
                    priority=priorities[number] if priorities else 0,
                    spent=bounded,
                ),
            )
            for number, (arm, job, sink) in enumerate(jobs)
        ]
        runs = (driver.run() for driver in drivers)
        return list(await asyncio.gather(*runs, return_exceptions=True))

    return asyncio.run(together())


def asked(sink: MemorySink) -> int:
    return sum(
        body.n for body in sink.bodies("expansion_asked") if isinstance(body, ExpansionAsked)
    )


def ends(sink: MemorySink) -> set[str]:
    searches = fold(sink.records).searches.values()
    return {search.ended.reason for search in searches if search.ended is not None}


def test_a_limit_of_the_fleet_is_dealt_out_to_its_arms_alike() -> None:
    first, second = MemorySink(), MemorySink()
    jobs = [
        ("a", tasks("a", searches=5, iterations=10), first),  # could ask for 100
        ("b", tasks("b", searches=2, iterations=10), second),  # 40
    ]
    assert run_jobs(jobs, limits=Limits(candidates=40)) == [0, 0]
    assert (asked(first), asked(second)) == (20, 20)
    assert ends(first) >= {"limits.candidates=40"}


def test_two_jobs_of_one_arm_share_its_part() -> None:
    sinks = [MemorySink() for _ in range(3)]
    jobs = [
        (arm, tasks(arm, searches=2, iterations=20), sink)
        for arm, sink in zip(("a", "a", "b"), sinks, strict=True)
    ]
    run_jobs(jobs, limits=Limits(candidates=80))
    of_a, also_of_a, of_b = map(asked, sinks)
    assert of_a + also_of_a == of_b == 40


def test_a_job_of_a_higher_priority_is_done_first() -> None:
    first, second = MemorySink(), MemorySink()
    jobs = [
        ("a", tasks("a", searches=2, iterations=10), first),
        ("b", tasks("b", searches=1, iterations=10), second),
    ]
    run_jobs(jobs, limits=Limits(candidates=30), priorities=(0, 1), places=1)
    assert asked(second) == 20
    assert asked(first) == 10


def test_the_places_are_those_of_the_whole_fleet() -> None:
    evaluator = CountingEvaluator()
    jobs = [(arm, tasks(arm, searches=3, iterations=5), MemorySink()) for arm in "abc"]
    assert run_jobs(jobs, places=2, evaluator=evaluator) == [0, 0, 0]
    assert evaluator.most == 4  # two expansions of two candidates


@pytest.mark.parametrize("places", [1, 3])
def test_a_job_whose_disk_is_full_ends_and_the_others_go_on(places: int) -> None:
    good, bad = MemorySink(), BrokenSink()
    jobs = [
        ("a", tasks("a", searches=2, iterations=10), bad),
        ("b", tasks("b", searches=2, iterations=10), good),
    ]
    failed, done = run_jobs(jobs, places=places)
    assert isinstance(failed, StoreError)
    assert (done, asked(good)) == (0, 40)
    assert ends(good) == {"budget"}
