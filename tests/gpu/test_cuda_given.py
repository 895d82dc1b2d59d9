"""Given kernels on a GPU: those that ship are right, and are raced where a run names them."""

from __future__ import annotations

import pytest

from kopt.actors.builder import nothing_to_build
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.candidate import Candidate
from kopt.data.problems import resolve
from kopt.data.problems.config import ProblemsConfig
from kopt.evaluation import Evaluation, missing_baselines, to_json
from kopt.problem import Problem
from kopt.prompts.language import language_of
from kopt.verdict import Correct

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SMALL = resolve(["production/*", "tutorial/triton_*"], ProblemsConfig(sizes="small"))
FULL = resolve(["production/layer_norm"], ProblemsConfig())[0]


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """One worker, whose speed-ups are over given kernels."""
    config = EvaluateConfig(
        secret=20_240_607,
        compile=False,
        trials=1,
        baseline="given",
        timeouts=TimeoutConfig(load_s=120.0, correctness_s=60.0, timing_s=60.0),
    )
    folder = tmp_path_factory.mktemp("given")
    worker = DeviceWorker(config, "cuda", 0, str(folder))
    yield worker, folder
    worker.close()


def judged(worker, problem: Problem, source: str) -> Evaluation:
    device, folder = worker
    candidate = Candidate(source=source, language=language_of(source))
    return device.evaluate(problem, candidate, nothing_to_build(candidate, cache_dir=folder))


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
def test_a_shipped_kernel_is_right_on_hidden_inputs(worker, problem: Problem) -> None:
    evaluation = judged(worker, problem, problem.given)
    assert isinstance(evaluation.verdict, Correct), evaluation.verdict.reason
    assert missing_baselines(to_json(evaluation)) == []
    assert evaluation.verdict.timing.given_us is not None


def test_a_candidate_is_raced_against_the_given_kernel(worker) -> None:
    evaluation = judged(worker, FULL, FULL.given)
    assert isinstance(evaluation.verdict, Correct), evaluation.verdict.reason
    timing = evaluation.verdict.timing
    assert timing.baseline == "given"
    assert 0.9 < timing.speedup < 1.1  # the same kernel in two processes
