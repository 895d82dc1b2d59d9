"""The evaluator that asks before it judges, over evaluators that judge at once."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors import cached_evaluator as module
from kopt.actors.cache.store import Store
from kopt.actors.cached_evaluator import CachedEvaluator
from kopt.actors.config import EvaluateConfig
from kopt.candidate import Candidate
from kopt.errors import WorkerLost
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.testing.fakes import InstantEvaluator, correct
from kopt.verdict import Crashed, Verdict

PROBLEM = Problem(name="p", source="class Model: ...\n")
SOURCE = "class ModelNew:\n    x = 1\n"
FAST = Candidate(source=SOURCE, language="torch")
SPACED = Candidate(source=SOURCE.replace("\n", "\n\n") + "# end\n", language="torch")
OTHER = Candidate(source=SOURCE.replace("1", "2"), language="torch")
FACTS = {"sandbox": "process+user", "driver": "580"}


class Judge(InstantEvaluator):
    """Judges once it is let to."""

    def __init__(self, verdict: Verdict | Exception | None = None) -> None:
        super().__init__()
        self.verdict = correct(2.0) if verdict is None else verdict
        self.may_go = asyncio.Event()
        self.may_go.set()

    async def target(self) -> Target:
        return Target(device="cpu", name="test", arch="x86_64", languages=("torch",))

    async def evaluate(self, problem: Problem, candidate: Candidate) -> Evaluation:
        self.calls.append((problem.problem_id, candidate.candidate_id))
        await self.may_go.wait()
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return await InstantEvaluator(lambda *_: self.verdict).evaluate(problem, candidate)


def wrap(
    judge: Judge,
    root: Path,
    *,
    cache: str = "on",
    facts: dict[str, str] | OSError = FACTS,
    wait_s: float | None = None,
) -> CachedEvaluator:
    async def ask(device: str) -> list[dict[str, str]]:
        assert device == "cpu"
        if isinstance(facts, OSError):
            raise facts
        return [facts]

    store = Store(root=root, kind="verdict", max_bytes=1 << 20, least_free_bytes=0)
    config = EvaluateConfig.model_validate({"cache": cache})
    return CachedEvaluator(judge, config=config, store=store, facts=ask, wait_s=wait_s)


def ask(evaluator: CachedEvaluator, *candidates: Candidate) -> list[Evaluation]:
    async def scenario() -> list[Evaluation]:
        return [await evaluator.evaluate(PROBLEM, candidate) for candidate in candidates]

    return asyncio.run(scenario())


def cached_detail(evaluation: Evaluation) -> str:
    (detail,) = [check.detail for check in evaluation.checks if check.name == "cached"]
    assert list(evaluation.timeline_s) == ["cached"]
    return detail


@pytest.mark.parametrize("cache", ["off", "read", "on"])
def test_a_text_of_another_layout_is_judged_once_in_a_run_whatever_the_cache(
    tmp_path, cache
) -> None:
    judge = Judge()
    first, second, third = ask(wrap(judge, tmp_path, cache=cache), FAST, SPACED, OTHER)
    assert len(judge.calls) == 2
    assert second.candidate == SPACED.candidate_id
    assert second.verdict == first.verdict
    assert cached_detail(second).startswith(
        f"judged in this run as candidate {FAST.candidate_id[:12]}, which differs in layout"
    )
    assert [check.name for check in third.checks] == [check.name for check in first.checks]
    assert third.timeline_s["timed"] == 0.5


def test_a_verdict_of_an_earlier_run_is_given_and_says_when_it_was_reached(tmp_path) -> None:
    (first,) = ask(wrap(Judge(), tmp_path), FAST)
    judge = Judge()
    again, spaced = ask(wrap(judge, tmp_path), FAST, SPACED)
    assert judge.calls == []
    assert again.verdict == first.verdict  # the interval stands as measured
    assert again.gates == first.gates
    detail = cached_detail(again)
    assert detail.startswith("judged 20")
    assert detail.endswith("Z")
    assert spaced.candidate == SPACED.candidate_id
    assert len([check for check in spaced.checks if check.name == "cached"]) == 1


def test_off_neither_reads_nor_writes_and_read_writes_nothing(tmp_path) -> None:
    for cache in ("off", "read"):
        ask(wrap(Judge(), tmp_path / cache, cache=cache), FAST)
        assert not (tmp_path / cache).exists()
    ask(wrap(Judge(), tmp_path), FAST)
    for cache, calls in (("off", 1), ("read", 0)):
        judge = Judge()
        ask(wrap(judge, tmp_path, cache=cache), FAST)
        assert len(judge.calls) == calls


def test_a_crash_is_judged_again_in_the_next_run_but_not_in_this_one(tmp_path) -> None:
    crash = Crashed(stage="correctness", log="RuntimeError: no")
    for _ in range(2):
        judge = Judge(crash)
        ask(wrap(judge, tmp_path), FAST, FAST)
        assert len(judge.calls) == 1
    assert list(tmp_path.glob("*/*")) == []


def test_other_facts_find_no_verdict_of_these(tmp_path) -> None:
    ask(wrap(Judge(), tmp_path), FAST)
    judge = Judge()
    ask(wrap(judge, tmp_path, facts={**FACTS, "driver": "581"}), FAST)
    assert len(judge.calls) == 1


def test_concurrent_requests_for_one_text_wait_for_one_judge(tmp_path) -> None:
    judge = Judge()

    async def scenario() -> list[Evaluation]:
        judge.may_go.clear()
        evaluator = wrap(judge, tmp_path)
        asked = [
            asyncio.create_task(evaluator.evaluate(PROBLEM, candidate))
            for candidate in (FAST, SPACED, FAST)
        ]
        await asyncio.wait(asked, timeout=0.2)
        judge.may_go.set()
        return await asyncio.gather(*asked)

    found = asyncio.run(scenario())
    assert len(judge.calls) == 1
    assert [each.candidate for each in found] == [
        each.candidate_id for each in (FAST, SPACED, FAST)
    ]


def test_another_driver_waits_for_the_one_that_judges(tmp_path) -> None:
    one, other = Judge(), Judge()

    async def scenario() -> list[Evaluation]:
        one.may_go.clear()
        first = asyncio.create_task(wrap(one, tmp_path).evaluate(PROBLEM, FAST))
        while not one.calls:
            await asyncio.sleep(0)
        second = asyncio.create_task(wrap(other, tmp_path).evaluate(PROBLEM, SPACED))
        await asyncio.wait([second], timeout=2 * module.POLL_S)
        assert not second.done()
        one.may_go.set()
        return await asyncio.gather(first, second)

    _, second = asyncio.run(scenario())
    assert other.calls == []
    assert second.candidate == SPACED.candidate_id
    assert second.timeline_s["cached"] >= module.POLL_S
    assert list(tmp_path.glob("*/*.claim")) == []


def test_another_driver_that_waited_too_long_judges_itself(tmp_path) -> None:
    one, other = Judge(), Judge()

    async def scenario() -> Evaluation:
        one.may_go.clear()
        first = asyncio.create_task(wrap(one, tmp_path).evaluate(PROBLEM, FAST))
        while not one.calls:
            await asyncio.sleep(0)
        try:
            return await wrap(other, tmp_path, wait_s=0.0).evaluate(PROBLEM, FAST)
        finally:
            first.cancel()

    second = asyncio.run(scenario())
    assert len(other.calls) == 1
    assert second.timeline_s["timed"] == 0.5


def test_a_lost_worker_is_nobodys_verdict_and_who_waited_judges_himself(tmp_path) -> None:
    judge = Judge(WorkerLost("timing-0", "died"))

    async def scenario() -> list[object]:
        evaluator = wrap(judge, tmp_path)
        asked = [evaluator.evaluate(PROBLEM, FAST) for _ in range(2)]
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(each) for each in asyncio.run(scenario())] == [WorkerLost, WorkerLost]
    assert len(judge.calls) == 2
    assert list(tmp_path.glob("*/*")) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (OSError("a host does not say what it has"), "a host does not say what it has"),
        ({**FACTS, "sandbox": "process"}, "keeps candidates from writing to the cache"),
    ],
)
def test_where_the_cache_is_no_proof_everything_is_judged_and_said_once(
    tmp_path, caplog, facts, words
) -> None:
    for _ in range(2):
        judge = Judge()
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            ask(wrap(judge, tmp_path, facts=facts), FAST, OTHER)
        assert len(judge.calls) == 2
        (record,) = caplog.records
        assert words in record.getMessage()
        assert "\n" not in record.getMessage()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_said_once_and_everything_is_judged(
    tmp_path, caplog
) -> None:
    (tmp_path / "file").write_text("in the way")
    judge = Judge()
    with caplog.at_level(logging.WARNING):
        found = ask(wrap(judge, tmp_path / "file" / "verdict"), FAST, OTHER)
    assert [each.verdict.kind for each in found] == ["correct", "correct"]
    (record,) = caplog.records
    assert "verdicts are not kept" in record.getMessage()


def test_a_damaged_verdict_is_judged_again_and_healed(tmp_path, caplog) -> None:
    ask(wrap(Judge(), tmp_path), FAST)
    (value,) = tmp_path.glob("*/*/value")
    value.write_bytes(value.read_bytes().replace(b'"correct"', b'"cheated"'))
    with caplog.at_level(logging.WARNING):
        judge = Judge()
        (again,) = ask(wrap(judge, tmp_path), FAST)
    assert len(judge.calls) == 1
    assert again.verdict.kind == "correct"
    assert {record.getMessage() for record in caplog.records} == {
        f"the verdict in {value.parent} is damaged: it is made again"
    }
    judge = Judge()
    ask(wrap(judge, tmp_path), FAST)
    assert judge.calls == []


def test_a_value_of_another_form_is_judged_again(tmp_path, caplog) -> None:
    evaluator = wrap(Judge(), tmp_path)
    ask(evaluator, FAST)
    (value,) = tmp_path.glob("*/*/value")
    key = value.parent.name
    store = evaluator._store
    with store.entry(key) as entry:
        store.drop(entry)
    store.put(key, b'{"made_s": 1, "eval": {"schema": 0}}')
    judge = Judge()
    with caplog.at_level(logging.WARNING):
        ask(wrap(judge, tmp_path), FAST)
    assert len(judge.calls) == 1
    assert "cannot be read and is not used" in caplog.text


def test_what_is_kept_names_who_was_judged(tmp_path) -> None:
    (first,) = ask(wrap(Judge(), tmp_path), FAST)
    (again,) = ask(wrap(Judge(), tmp_path), replace(FAST, strategy="a label"))
    assert again.candidate == first.candidate
    assert "as candidate" not in cached_detail(again)
