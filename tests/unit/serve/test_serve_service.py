"""The reward service: idempotent, bounded, never held up by one candidate, each answered once."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable
from typing import TypeVar

import pytest

from kopt.actors.serve.config import ServeConfig
from kopt.actors.serve.messages import ChatMessage, Item
from kopt.actors.serve.service import Busy, RewardService
from kopt.candidate import Candidate
from kopt.errors import WorkerLost
from kopt.evaluation import Evaluation
from kopt.ports import Evaluator, Target
from kopt.problem import Problem
from kopt.reward import RewardRule
from kopt.testing.fakes import InstantEvaluator, correct

PROBLEM = Problem(name="set/a", source="class Model: ...\n")
TARGET = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))
REFERENCE = (
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x\n"
    "def get_inputs(): return [torch.ones(2)]\n"
)


def completion(number: int, *, remark: str = "") -> str:
    body = f"    number = {number}\n    def forward(self, x): return x"
    return f"{remark}\n```python\nimport torch\nclass ModelNew(torch.nn.Module):\n{body}\n```\n"


def item(number: int, *, remark: str = "") -> Item:
    return Item(problem="set/a", completion=completion(number, remark=remark))


def service_of(evaluator: Evaluator, **bounds: int | float) -> RewardService:
    config = ServeConfig.model_validate(bounds)
    return RewardService(
        evaluator, target=TARGET, rule=RewardRule(), config=config, problems=[PROBLEM]
    )


class Held:
    """An Evaluator whose candidates wait for an event, all or those of one number."""

    def __init__(self, number: int | None = None) -> None:
        self.inner = InstantEvaluator(lambda problem, candidate: correct(2.0))
        self.event = asyncio.Event()
        self._word = None if number is None else f"number = {number}\n"

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        if self._word is None or self._word in candidate.source:
            await self.event.wait()
        return await self.inner.evaluate(problem, candidate)


T = TypeVar("T")


def run(awaitable: Awaitable[T]) -> T:
    async def main() -> T:
        return await awaitable

    return asyncio.run(main())


def test_equal_completions_are_judged_once() -> None:
    evaluator = InstantEvaluator(lambda problem, candidate: correct(2.0))
    service = service_of(evaluator)

    async def ask() -> None:
        first = await service.judge([item(1), item(1, remark="other words"), item(2)], wait_s=9)
        again = await service.judge([item(1)], wait_s=9)
        assert [each.status for each in first] == ["done"] * 3
        assert first[0] == first[1] == again[0]
        assert first[0].reward == pytest.approx(0.6931, abs=1e-4)
        assert first[0].eval is not None
        assert first[0].eval["candidate"] == first[0].candidate

    run(ask())
    assert len(evaluator.calls) == 2


def test_a_completion_without_code_has_a_reward_and_a_reason() -> None:
    service = service_of(InstantEvaluator())
    blocks = "\n".join(f"```python\nx = {n}\n```" for n in range(10))
    found = run(service.judge([Item(problem="set/a", completion="no"), Item(problem="set/a", completion=blocks)], wait_s=0))  # fmt: skip # noqa: E501
    assert [(each.status, each.kind, each.reward) for each in found] == [
        ("done", "no_candidate", -3.0)
    ] * 2
    assert "10 code blocks" in found[1].reason
    assert service.waiting == 0


def test_of_ten_modules_the_last_whole_one_counts() -> None:
    evaluator = InstantEvaluator(lambda problem, candidate: correct(2.0))
    text = "".join(completion(n) for n in range(10))
    run(service_of(evaluator).judge([Item(problem="set/a", completion=text)], wait_s=9))
    last = run(service_of(evaluator).judge([item(9)], wait_s=9))
    assert evaluator.calls[0] == (PROBLEM.problem_id, last[0].candidate)


def test_one_slow_candidate_holds_up_nobody() -> None:
    async def ask() -> None:
        evaluator = Held(number=1)
        service = service_of(evaluator, max_running=2)
        found = await service.judge([item(1), item(2), item(3)], wait_s=0.2)
        assert [each.status for each in found] == ["pending", "done", "done"]
        (quick,) = await service.judge([item(4)], wait_s=9)
        assert quick.status == "done"
        evaluator.event.set()
        late = await service.look_up(found[0].key, wait_s=9)
        assert late is not None
        assert late.status == "done"
        assert await service.judge([item(1)], wait_s=0) == [late]

    run(ask())


def test_too_many_are_refused_whole_and_what_is_known_is_not_counted() -> None:
    async def ask() -> None:
        evaluator = Held(number=9)
        service = service_of(evaluator, max_waiting=3)
        await service.judge([item(1), item(2)], wait_s=9)
        await service.judge([item(9)], wait_s=0)
        with pytest.raises(Busy) as refused:
            await service.judge([item(3), item(4), item(5)], wait_s=0)
        assert refused.value.retry_after_s >= 1.0
        assert service.waiting == 1
        found = await service.judge([item(1), item(2), item(1), item(3)], wait_s=9)
        assert [each.status for each in found] == ["done"] * 4
        await service.close()

    run(ask())


def test_a_lost_worker_is_no_verdict_and_is_tried_again() -> None:
    lost = [True]

    def judge(problem: Problem, candidate: Candidate) -> object:
        if lost:
            lost.clear()
            raise WorkerLost("device 0", "killed")
        return correct(2.0)

    async def ask() -> None:
        service = service_of(InstantEvaluator(judge))  # type: ignore[arg-type]
        (first,) = await service.judge([item(1)], wait_s=9)
        assert (first.status, first.reward) == ("failed", None)
        assert "killed" in first.reason
        (second,) = await service.judge([item(1)], wait_s=9)
        assert second.status == "done"

    run(ask())


def test_problems_are_named_or_sent() -> None:
    service = service_of(InstantEvaluator())
    sent = Item(problem="x", problem_source=REFERENCE, completion=completion(1))
    broken = Item(problem_source="x = 1\n", completion=completion(1))
    unknown = Item(problem="set/b", completion=completion(1))
    by_id = Item(problem=PROBLEM.problem_id, completion=completion(1))
    talk = [ChatMessage(role="user", content="?"), ChatMessage(content=completion(1))]
    chat = Item(problem="set/a", completion=talk)
    found = run(service.judge([sent, broken, unknown, by_id, chat], wait_s=9))
    assert [each.status for each in found] == ["done", "failed", "failed", "done", "done"]
    assert "no class Model" in found[1].reason
    assert "set/b" in found[2].reason
    assert found[3] == found[4]


def test_ten_thousand_mixed_requests_are_each_answered_once() -> None:
    draw = random.Random(7)

    class Faulty(InstantEvaluator):
        async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
            await asyncio.sleep(0)
            if draw.random() < 0.2:
                raise WorkerLost("device", "injected")
            if draw.random() < 0.1:
                raise RuntimeError("injected")
            return await super().evaluate(problem, candidate)

    async def ask() -> Counter[str]:
        service = service_of(Faulty(), max_waiting=200, max_running=8)
        answers: Counter[str] = Counter()

        async def trainer(numbers: list[int]) -> None:
            open_ = numbers
            while open_:
                batch, rest = open_[:50], open_[50:]
                items = [
                    Item(problem="set/a", completion="no code") if n % 10 == 0 else item(n)
                    for n in batch
                ]
                try:
                    found = await service.judge(items, wait_s=5)
                except Busy:
                    await asyncio.sleep(0)
                    continue
                assert len(found) == len(batch)
                again = [n for n, each in zip(batch, found, strict=True) if each.status != "done"]
                answers.update(each.kind or "" for each in found if each.status == "done")
                open_ = again + rest

        plan = [draw.randrange(400) for _ in range(10_000)]
        await asyncio.gather(*(trainer(plan[start::8]) for start in range(8)))
        assert service.waiting == 0
        return answers

    answers = run(ask())
    assert answers.total() == 10_000
    assert answers["no_candidate"] > 800
    assert answers["correct"] > 3_000
