"""The kernel that a problem comes with is measured, raced where asked, and held to be right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig, TimingConfig
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.candidate import Candidate
from kopt.evaluation import Evaluation, missing_baselines, to_json
from kopt.problem import Problem
from kopt.timing import Timing
from kopt.verdict import Correct

REFERENCE = """
import time, torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))

    def forward(self, x):
        time.sleep(0.008)
        return x * self.weight

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return [8]
"""
KERNEL = REFERENCE.partition("def get_inputs")[0].replace("Model(", "ModelNew(")
TRITON = "import triton\n" + KERNEL


def judged(tmp_path: Path, *givens: str) -> list[Evaluation]:
    """Judges one candidate, which takes a quarter of the reference's time, for each problem."""
    config = EvaluateConfig(
        compile=False,
        trials=1,
        secret=7,
        baseline="given",
        timing=TimingConfig(min_pairs=4, max_pairs=4, block_ms=10.0),
    )
    candidate = Candidate(source=KERNEL.replace("0.008", "0.002"), language="torch")
    supervisor = Supervisor(config, device="cpu", cache_dir=tmp_path / "cache")
    problem = Problem(name="paused", source=REFERENCE)
    builds = tmp_path / "cache" / "build" / "x"
    builds.mkdir(parents=True)
    try:
        return [
            supervisor.evaluate(replace(problem, given=given), candidate, build_dir=builds)
            for given in givens
        ]
    finally:
        supervisor.close()


@pytest.mark.alone
def test_a_given_kernel_is_raced_unless_it_is_wrong_or_of_another_device(tmp_path: Path) -> None:
    right = KERNEL.replace("0.008", "0.004")
    wrong = KERNEL.replace("x * self.weight", "x + self.weight")
    raced, faulty, unfit = judged(tmp_path, right, wrong, TRITON)
    timing = timing_of(raced)
    assert timing.baseline == "given"
    assert 4_000 <= (timing.given_us or 0.0) < timing.eager_us
    assert timing.baseline_us >= 4_000
    # Where it is none, speed-ups are over the best of the others.
    assert (timing_of(faulty).baseline, timing_of(faulty).given_us) == ("eager", None)
    (line,) = missing_baselines(to_json(faulty))
    assert line.startswith("given: not measured: the given kernel is wrong: ")
    assert (timing_of(unfit).baseline, timing_of(unfit).given_us) == ("eager", None)
    assert missing_baselines(to_json(unfit)) == []  # nothing failed: it is for a GPU
    words = [check.detail for check in unfit.checks if check.name == "baseline:given"]
    assert words == ["triton kernels do not run on cpu, or triton is not installed"]


def timing_of(evaluation: Evaluation) -> Timing:
    assert isinstance(evaluation.verdict, Correct), evaluation.verdict.reason
    return evaluation.verdict.timing
