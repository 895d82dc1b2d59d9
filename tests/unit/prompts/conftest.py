"""Requests to write from, and answers to read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kopt.candidate import Candidate, Language
from kopt.evaluation import Evaluation
from kopt.expansion import Expansion
from kopt.ports import Attempt, Target, WriteRequest
from kopt.problem import Problem
from kopt.prompts.answer import Reading, read_answer
from kopt.verdict import Crashed

CPU = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))


def make_request(*, parent: Candidate | None = None, target: Target = CPU) -> WriteRequest:
    problem = Problem(name="p", source="class Model: ...\n")
    attempt = None
    if parent is not None:
        evaluation = Evaluation(
            verdict=Crashed(stage="correctness", log="RuntimeError: no"),
            problem=problem.problem_id,
            candidate=parent.candidate_id,
            language=parent.language,
            ladder="strict",
            device=target.label,
        )
        attempt = Attempt(candidate=parent, evaluation=evaluation)
    return WriteRequest(
        problem=problem,
        target=target,
        search="p/default/0",
        arm="default",
        seed=0,
        expansion=Expansion(
            ordinal=0,
            parent_node=0 if parent is None else 1,
            parent=None if parent is None else parent.candidate_id,
            mode="initial" if parent is None else "debug",
            num_candidates=2,
            first_child=0,
            seed=7,
        ),
        parent=attempt,
    )


@pytest.fixture(scope="session")
def read() -> Callable[..., Reading]:
    """Returns a function: the reading of an answer on a CPU, or where `languages` can be built."""

    def read(
        text: str,
        *,
        max_candidates: int = 1,
        parent: Candidate | None = None,
        languages: tuple[Language, ...] = ("cpp", "torch"),
    ) -> Reading:
        target = Target(device="cpu", name="a CPU", arch="x86_64", languages=languages)
        request = make_request(parent=parent, target=target)
        return read_answer(text, request=request, programmer="t", max_candidates=max_candidates)

    return read
