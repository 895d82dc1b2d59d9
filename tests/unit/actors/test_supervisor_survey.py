"""A problem in numbers, in the evaluator's real processes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kopt.actors.supervisor import exchange, supervisor
from kopt.errors import ProblemError
from kopt.problem import Problem
from kopt.survey import SizedTensor

MEAN = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shift = nn.Parameter(torch.full((width,), 64.0))

    def forward(self, x):
        return (x + self.shift).mean()


def get_inputs():
    return [torch.randn(1024, 1024)]


def get_input_cases():
    return [[torch.randn(3, 1024)], [torch.randn(1, 1024)]]


def get_init_inputs():
    return [1024]
"""


def test_a_survey_has_sizes_times_and_the_bytes_of_a_mean(judge) -> None:
    survey = judge.survey(Problem(name="mean", source=MEAN))
    assert survey.inputs == (SizedTensor(name="[0]", shape=(1024, 1024), dtype="float32"),)
    assert survey.outputs == (SizedTensor(name="", shape=(), dtype="float32"),)
    assert survey.state == (SizedTensor(name="shift", shape=(1024,), dtype="float32"),)
    assert survey.num_cases == 3
    assert survey.baseline == "eager"
    assert dict(survey.baselines_us)["eager"] > 0.0
    # 4 MiB at less than 4 TB/s; the output alone would take a millionth of that.
    assert survey.sol_us is not None
    assert survey.sol_us > 1.0
    assert survey.bytes_per_s is not None
    assert survey.bytes_per_s > 1e8
    assert survey.flop_per_s is not None
    assert 1e8 < survey.flop_per_s < 1e15
    assert survey.untimed().bytes_per_s is None
    assert survey.untimed().flop_per_s is None


def test_a_reference_that_does_not_run_has_no_survey(judge) -> None:
    with pytest.raises(ProblemError):
        judge.survey(Problem(name="broken", source="raise RuntimeError('no')\n"))


def test_surveys_that_find_no_room_beside_each_other_are_made_alone(judge, monkeypatch) -> None:
    measure, both, tries = supervisor.survey_of, threading.Barrier(2, timeout=60.0), []

    def crowded(bench, session):
        tries.append(session.problem.name)
        if len(tries) <= 2:
            both.wait()
            raise MemoryError("the device has no room for another block")
        return measure(bench, session)

    monkeypatch.setattr(supervisor, "survey_of", crowded)
    problems = [
        Problem(name=name, source=MEAN.replace("1024, 1024", f"{rows}, 1024"))
        for name, rows in (("small", 64), ("large", 128))
    ]
    with ThreadPoolExecutor(2) as threads:
        surveys = list(threads.map(judge.survey, problems))
    assert [survey.inputs[0].shape for survey in surveys] == [(64, 1024), (128, 1024)]
    assert sorted(tries) == ["large", "large", "small", "small"]


def test_a_survey_that_finds_no_room_alone_is_one_line(judge, monkeypatch) -> None:
    def crowded(bench, session):
        raise MemoryError("the device has no room for another block")

    monkeypatch.setattr(supervisor, "survey_of", crowded)
    with pytest.raises(ProblemError, match="problem mean: it does not fit into memory: the device"):
        judge.survey(Problem(name="mean", source=MEAN))


def test_a_survey_that_fails_for_another_reason_is_not_made_again(judge, monkeypatch) -> None:
    both, tries = threading.Barrier(2, timeout=60.0), []

    def broken(bench, session):
        tries.append(session.problem.name)
        both.wait()
        raise ProblemError(session.problem.name, "the reference fails")

    monkeypatch.setattr(supervisor, "survey_of", broken)
    problems = [
        Problem(name=name, source=MEAN.replace("1024, 1024", f"{rows}, 1024"))
        for name, rows in (("one", 32), ("other", 48))
    ]
    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(judge.survey, problem) for problem in problems]:
            with pytest.raises(ProblemError, match="the reference fails"):
                each.result()
    assert sorted(tries) == ["one", "other"]


NO_BLOCK = "the device has no room for another block"
OOM = "OutOfMemoryError: CUDA out of memory. Tried to allocate 24.00 GiB"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(NO_BLOCK), f"it does not fit into memory: {NO_BLOCK}"),
        (ProblemError("mean", f"the reference fails at call: {OOM}"), OOM),
    ],
    ids=["with the supervisor", "with the reference"],
)
def test_a_candidate_that_leaves_no_room_alone_costs_itself_and_not_its_problem(
    judge, monkeypatch, error, words
) -> None:
    def crowded(attempt, end):
        monkeypatch.setattr(supervisor.Try, "is_loaded", True)
        raise error

    monkeypatch.setattr(supervisor.Try, "judge", crowded)
    made = judge(MEAN.replace("class Model(", "class ModelNew("), problem=_mean())
    assert (made.verdict.kind, made.verdict.stage) == ("crashed", "memory")
    assert made.verdict.log.startswith("beside it, ")
    assert words in made.verdict.log


def test_a_reference_that_fails_beside_a_candidate_for_another_reason_is_the_problems_fault(
    judge, monkeypatch
) -> None:
    def broken(attempt, end):
        monkeypatch.setattr(supervisor.Try, "is_loaded", True)
        raise ProblemError("mean", "the reference fails at call: it is broken")

    monkeypatch.setattr(supervisor.Try, "judge", broken)
    with pytest.raises(ProblemError, match="it is broken"):
        judge(MEAN.replace("class Model(", "class ModelNew("), problem=_mean())


def _mean() -> Problem:
    return Problem(name="mean", source=MEAN)


@pytest.mark.parametrize(("available", "short"), [(0, True), (1 << 60, False)])
def test_memory_is_short_below_its_least_share(monkeypatch, available, short) -> None:
    monkeypatch.setattr(exchange, "available_bytes", lambda: available)
    assert exchange.is_short_in("cpu") is short
