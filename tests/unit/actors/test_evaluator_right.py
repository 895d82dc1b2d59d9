"""Candidates that are right, in the evaluator's real processes: from C++, drawing, in trees."""

from __future__ import annotations

import dataclasses
import statistics

import pytest

from kopt.actors.supervisor import session
from kopt.problem import Problem
from kopt.speed_of_light import Light

CPP = '''
import ctypes
import os
import subprocess

import torch
from torch import nn

TEXT = """
extern "C" void rows(const float *x, const float *scale, const float *shift, float *out) {
    for (int row = 0; row < 64; ++row) {
        for (int column = 0; column < 32; ++column) {
            const float value = x[row * 32 + column];
            out[row * 32 + column] = (value > 0 ? value : 0) * scale[column] + shift[column];
        }
    }
}
"""


def built():
    path = os.path.join(os.environ["KOPT_BUILD_DIR"], "rows.so")
    if not os.path.exists(path):
        with open(path + ".cpp", "w") as file:
            file.write(TEXT)
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", path + ".cpp", "-o", path], check=True)
    return ctypes.CDLL(path).rows


rows = built()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))
        self.shift = nn.Parameter(torch.zeros(32))

    def forward(self, x):
        out = torch.empty_like(x)
        rows(*(ctypes.c_void_p(each.data_ptr()) for each in (x, self.scale, self.shift, out)))
        return out
'''
ROWS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(32))
        self.shift = nn.Parameter(torch.zeros(32))

    def forward(self, x):
        return torch.relu(x) * self.scale + self.shift


def get_inputs():
    return [torch.rand(64, 32)]
"""


@pytest.fixture
def rows() -> Problem:
    return Problem(name="rows", source=ROWS)


def as_candidate(source: str) -> str:
    return source.replace("class Model(", "class ModelNew(")


def test_a_right_candidate_is_correct_and_timed(judge, candidate) -> None:
    made = judge(candidate())
    assert made.verdict.kind == "correct", made.verdict.reason
    assert [gate.name for gate in made.gates] == ["static", "correctness", "performance"]
    timing = made.verdict.timing
    assert timing.num_pairs == 4
    assert len(timing.samples_us) == len(timing.baseline_samples_us) == 4
    assert statistics.median(timing.samples_us) == pytest.approx(timing.time_us, rel=1e-4)
    assert timing.baseline == "eager"
    assert timing.speedup_ci[0] <= timing.speedup <= timing.speedup_ci[1]
    assert timing.time_us > 0.0
    assert timing.sol_us is not None
    assert timing.sol_share > 0.0
    assert made.sandbox.split("+")[0] == "process"
    assert {"prepared", "forked", "verified", "timed"} <= set(made.timeline_s)


@pytest.mark.alone
def test_no_call_is_faster_than_light(judge, candidate) -> None:
    timing = judge(candidate()).verdict.timing
    assert 0.0 < timing.sol_share < 1.0


@pytest.mark.parametrize(("sol_us", "is_one"), [(1e-3, True), (1e9, False)])
def test_a_speed_of_light_that_a_call_beats_is_none(
    judge, candidate, monkeypatch, sol_us, is_one
) -> None:
    monkeypatch.setattr(session, "problem_light", lambda *_, **__: Light(sol_us=sol_us))
    source = f"{judge.problem.source}\n# {sol_us}: another problem to the evaluator\n"
    made = judge(candidate(), problem=Problem(name="light", source=source))
    assert made.verdict.kind == "correct", made.verdict.reason
    assert made.verdict.timing.sol_us == (sol_us if is_one else None)


def test_equal_requests_get_equal_checks(judge, candidate) -> None:
    first, second = judge(candidate()), judge(candidate())
    assert [check.name for check in first.checks] == [check.name for check in second.checks]
    # A library sums in another order where memory lies otherwise: not all digits are the same.
    assert dataclasses.asdict(first.verdict.error) == pytest.approx(
        dataclasses.asdict(second.verdict.error), rel=0.01
    )


def test_a_c_plus_plus_candidate_is_built_ahead_and_is_correct(judge, rows) -> None:
    made = judge(CPP, problem=rows, language="cpp")
    assert made.verdict.kind == "correct", made.verdict.reason
    again = judge(CPP, problem=rows, language="cpp")
    assert again.verdict.kind == "correct"
    assert again.timeline_s["built"] < made.timeline_s["built"]


def test_a_c_plus_plus_candidate_that_is_wrong_is_incorrect(judge, rows) -> None:
    made = judge(CPP.replace("value > 0", "value > -1"), problem=rows, language="cpp")
    assert made.verdict.kind == "incorrect", made.verdict.reason


def test_a_compiler_error_is_a_failed_build_with_the_compilers_words(judge, rows) -> None:
    made = judge(
        CPP.replace("const float value", "const flaot value"), problem=rows, language="cpp"
    )
    assert (made.verdict.kind, made.verdict.stage) == ("compile_failed", "build")
    assert "flaot" in made.verdict.log


def test_a_build_that_writes_out_of_bounds_is_a_crash(judge, rows) -> None:
    source = CPP.replace("out[row * 32 + column] =", "out[row * 32 + column + 100000000] =")
    made = judge(source, problem=rows, language="cpp")
    assert made.verdict.kind == "crashed"
    assert "SIGSEGV" in made.verdict.reason


def test_a_language_that_the_device_cannot_build_does_not_compile(judge, candidate) -> None:
    made = judge(candidate(), language="cuda")
    assert (made.verdict.kind, made.verdict.stage) == ("compile_failed", "static")
    assert "language cuda cannot be built here" in made.verdict.reason


def test_dropout_is_judged_under_equal_seeds(judge) -> None:  # exploits F7
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x) * 2


def get_inputs():
    return [torch.randn(128, 512)]
"""
    problem = Problem(name="dropout", source=source)
    made = judge(as_candidate(source), problem=problem)
    assert made.verdict.kind == "correct", made.verdict.reason
    made = judge(as_candidate(source).replace("self.drop(x)", "x"), problem=problem)
    assert made.verdict.kind == "incorrect"


def test_a_tree_of_outputs_with_integers_is_compared_whole(judge) -> None:  # exploits F12
    source = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, scale):
        values, places = torch.max(x * scale, dim=1)
        return {"values": values, "rest": [places, (x > 0).sum()]}


def get_inputs():
    return [torch.randn(64, 128), 2.0]
"""
    problem = Problem(name="tree", source=source)
    made = judge(as_candidate(source), problem=problem)
    assert made.verdict.kind == "correct", made.verdict.reason
    made = judge(as_candidate(source).replace("(x > 0)", "(x > 0.01)"), problem=problem)
    assert made.verdict.kind == "incorrect"
    made = judge(as_candidate(source).replace('"rest"', "1"), problem=problem)
    assert (made.verdict.kind, made.verdict.check) == ("incorrect", "structure")
