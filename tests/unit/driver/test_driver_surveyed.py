"""A programmer that reads words is told the problem's numbers, with the first prompt already."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kopt.driver.surveyed import SurveyedProgrammer
from kopt.errors import KoptError, ProblemError, WorkerLost
from kopt.ports import WriteRequest
from kopt.problem import Problem
from kopt.survey import SizedTensor, Survey
from kopt.testing.fakes import ScriptedProgrammer, fresh_candidates
from kopt.testing.small_fleet import small_request

SURVEY = Survey(
    inputs=(SizedTensor(name="[0]", shape=(4, 2), dtype="float32"),),
    baseline="eager",
    baselines_us=(("eager", 12.0),),
    sol_us=3.0,
)


class Surveys:
    """A Surveyor that knows one answer, or fails."""

    def __init__(self, failure: KoptError | None = None) -> None:
        self._failure = failure
        self.asked: list[str] = []

    async def survey(self, problem: Problem) -> Survey:
        self.asked.append(problem.name)
        if self._failure is not None:
            raise self._failure
        return SURVEY


def written(surveys: Surveys, request: WriteRequest, *, timed: bool = True) -> list[WriteRequest]:
    """The requests that the programmer behind was given."""
    seen: list[WriteRequest] = []

    def script(given: WriteRequest):
        seen.append(given)
        return fresh_candidates(given)

    programmer = SurveyedProgrammer(ScriptedProgrammer(script), surveys, timed=timed)
    asyncio.run(programmer.write(request))
    asyncio.run(programmer.close())
    return seen


def test_a_request_has_the_survey_of_its_problem() -> None:
    surveys = Surveys()
    request = small_request(first=0, wanted=2)
    assert written(surveys, request) == [replace(request, survey=SURVEY)]
    assert surveys.asked == [request.problem.name]


def test_where_prompts_may_not_depend_on_the_clock_sizes_alone_are_told() -> None:
    (given,) = written(Surveys(), small_request(first=0, wanted=1), timed=False)
    assert given.survey == Survey(inputs=SURVEY.inputs)


def test_a_survey_that_is_there_already_stays() -> None:
    surveys = Surveys()
    request = replace(small_request(first=0, wanted=1), survey=Survey(sol_us=3.0))
    assert written(surveys, request) == [request]
    assert not surveys.asked


def test_where_a_worker_was_lost_it_is_written_without() -> None:
    request = small_request(first=0, wanted=1)
    assert written(Surveys(WorkerLost("timing-0", "died")), request) == [request]


def test_nobody_writes_for_a_reference_that_does_not_run() -> None:
    with pytest.raises(ProblemError, match="no get_inputs"):
        written(Surveys(ProblemError("p", "no get_inputs")), small_request(first=0, wanted=1))
