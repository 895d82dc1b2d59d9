"""A problem in numbers on a GPU: the speed of light of what is reduced to one number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.problem import Problem
from kopt.survey import Survey

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

MIB = 1 << 20
CONFIG = EvaluateConfig(
    secret=20_240_607,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(load_s=120.0, correctness_s=30.0, timing_s=60.0, reference_s=120.0),
)
MODEL = """
import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, {names}):
        return {value}


def get_inputs():
    return [{inputs}]
"""
SCORES = "torch.randn(32768, 4096)"
PROBLEMS = {
    "a cross entropy": (
        "x, labels",
        "functional.cross_entropy(x, labels)",
        f"{SCORES}, torch.randint(4096, (32768,))",
    ),
    "a mean": ("x", "(x + 64.0).mean()", SCORES),
    "a sum of squares": ("x", "x.square().sum()", SCORES),
    "the greatest": ("x", "x.max()", SCORES),
    "a sum by atomic additions": (
        "x, at",
        "x.new_zeros(4096).index_add(0, at, x).sum()",
        "torch.randn(1 << 27), torch.randint(4096, (1 << 27,))",
    ),
}


@pytest.fixture(scope="module")
def worker(new_cache) -> Iterator[DeviceWorker]:
    made = DeviceWorker(CONFIG, "cuda", 0, str(new_cache()))
    yield made
    made.close()


@pytest.mark.parametrize("name", PROBLEMS)
def test_all_that_is_reduced_to_one_number_counts_for_the_speed_of_light(
    worker: DeviceWorker, name: str
) -> None:
    names, value, inputs = PROBLEMS[name]
    source = MODEL.format(names=names, value=value, inputs=inputs)
    survey: Survey = worker.survey(Problem(name=name, source=source))
    eager_us = dict(survey.baselines_us)["eager"]
    # At least 512 MiB are read, at no more than 8 TB/s; the reference cannot be below that.
    assert survey.sol_us is not None
    assert 512 * MIB / 8e12 * 1e6 < survey.sol_us < eager_us


def test_a_survey_says_what_the_reference_takes_and_gives(worker: DeviceWorker) -> None:
    names, value, inputs = PROBLEMS["a cross entropy"]
    source = MODEL.format(names=names, value=value, inputs=inputs)
    survey = worker.survey(Problem(name="a cross entropy", source=source))
    assert [(each.shape, each.dtype) for each in survey.inputs] == [
        ((32768, 4096), "float32"),
        ((32768,), "int64"),
    ]
    assert [each.shape for each in survey.outputs] == [()]
    assert survey.baseline == "eager"
