"""Problems that ask for other sizes too: code for those timed, another way for the others."""

import types

import pytest
import torch

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.study import Study
from kopt.problem import Problem

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 512)

    def scaled(self, x):
        return 0.5 * x

    def forward(self, x, *more):
        return self.linear(self.scaled(x)).sum(dim=1, keepdim=True) + more[0]


def get_inputs():
    return [torch.randn(256, 64), torch.randn(256, 1)]


def get_input_cases():
    return [[torch.randn(5, 64), torch.randn(5, 1)]]
"""


def first(source):
    study = Study(
        Problem(name="p", source=source), mode="train", device="cpu", languages=("torch",)
    )
    return study.candidates(None, mode="initial", limit=1)[0]


def test_other_sizes_are_answered_by_the_references_own_forward():
    written = first(SOURCE)
    assert "linear_reduce" in written.strategy
    assert "get_input_cases" not in written.source
    module = types.ModuleType("made")
    exec(compile(written.source, "made", "exec"), module.__dict__)
    new = module.ModelNew()
    with torch.no_grad():
        for rows in (256, 5, 1):
            x, more = torch.randn(rows, 64), torch.randn(rows, 1)
            expected = new.linear(0.5 * x).sum(dim=1, keepdim=True) + more
            torch.testing.assert_close(new(x, more), expected, rtol=1e-3, atol=1e-3)


def test_without_cases_other_sizes_are_refused_in_a_clear_line():
    source = SOURCE[: SOURCE.index("def get_input_cases")]
    module = types.ModuleType("made")
    exec(compile(first(source).source, "made", "exec"), module.__dict__)
    with pytest.raises(ValueError, match=r"expected x \(256, 64\) torch.float32, found \(5, 64\)"):
        module.ModelNew()(torch.randn(5, 64), torch.randn(5, 1))


def test_an_inherited_forward_of_any_size_is_said_to_be_out_of_reach():
    source = SOURCE.replace("class Model(nn.Module)", "class Base(nn.Module)").replace(
        "def get_inputs", "class Model(Base):\n    pass\n\n\ndef get_inputs"
    )
    with pytest.raises(NotRewritable, match="inherits forward"):
        first(source)
