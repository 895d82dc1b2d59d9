"""A problem in numbers, in the evaluator's real processes."""

from __future__ import annotations

import pytest

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


def test_a_reference_that_does_not_run_has_no_survey(judge) -> None:
    with pytest.raises(ProblemError):
        judge.survey(Problem(name="broken", source="raise RuntimeError('no')\n"))
