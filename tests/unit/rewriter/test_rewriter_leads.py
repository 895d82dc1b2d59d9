"""`programmer.seeds=rewriter`: a model's tree begins with what the rewriter writes."""

import asyncio

import pytest
from pydantic import ValidationError

from kopt.actors.programmers.config import RewriterConfig
from kopt.actors.programmers.openai_config import OpenAIConfig
from kopt.actors.rewriter.worker import RewriterWorker
from kopt.driver.leading import LEAD, LedProgrammer
from kopt.expansion import first_expansion
from kopt.ports import Answer, WriteRequest
from kopt.problem import Problem
from kopt.testing.fakes import ScriptedProgrammer
from kopt.testing.small_fleet import SMALL_TARGET


class HereRewriter:
    """The rewriter in this process."""

    name = "rewriter"

    def __init__(self) -> None:
        self._worker = RewriterWorker()

    async def write(self, request: WriteRequest) -> Answer:
        return self._worker.write(request, "train")

    async def close(self) -> None:
        pass


def first_ideas(problem: Problem, inner: ScriptedProgrammer, *, wanted: int) -> Answer:
    request = WriteRequest(
        problem=problem,
        target=SMALL_TARGET,
        search="set/one/arm/0",
        arm="arm",
        seed=0,
        expansion=first_expansion(num_candidates=wanted, seed=5),
        parent=None,
    )
    return asyncio.run(LedProgrammer(inner, HereRewriter()).write(request))


def test_the_rewriters_first_ideas_come_before_the_models(problem_of) -> None:
    case = {"init": "self.l = nn.Linear(256, 512)", "inputs": ("torch.randn(64, 256)",)}
    problem = problem_of("return F.silu(self.l(x).sum(1, keepdim=True))", dtype=None, **case)
    inner = ScriptedProgrammer()
    answer = first_ideas(problem, inner, wanted=LEAD + 2)
    by = [candidate.programmer for candidate in answer.candidates]
    num_led = by.count("rewriter")
    assert 1 <= num_led <= LEAD
    assert "rewriter" not in by[num_led:]
    assert len(by) == LEAD + 2
    assert "linear_reduce" in answer.candidates[0].strategy
    assert inner.requests[0].expansion.first_child == 0


def test_a_problem_that_cannot_be_rewritten_is_the_models_alone(problem_of) -> None:
    problem = problem_of("return x * 2 if x.sum() > 0 else x", dtype=None)
    inner = ScriptedProgrammer()
    answer = first_ideas(problem, inner, wanted=2)
    assert inner.requests[0].expansion.num_candidates == 2
    assert answer.note.startswith("not rewritable")


def test_only_a_model_can_be_led() -> None:
    assert OpenAIConfig.model_validate({"kind": "openai", "seeds": "rewriter"}).seeds == "rewriter"
    with pytest.raises(ValidationError, match="seeds"):
        RewriterConfig.model_validate({"seeds": "rewriter"})
