"""Batch norms in training mode: joined with their neighbours, buffers moved as by torch."""

import types

import pytest
import torch

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.study import Study
from kopt.problem import Problem

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm{rank}d(6, momentum={momentum})
        nn.init.normal_(self.norm.weight)

    def forward(self, x):
        {forward}


def get_inputs():
    return [3.0 + 2.0 * torch.randn({sizes})]
"""
SIZES = {1: "40, 6, 9", 2: "16, 6, 5, 7", 3: "4, 6, 5, 3, 4"}


def made(source):
    module = types.ModuleType("made")
    exec(compile(source, "made", "exec"), module.__dict__)
    return module


def source_of(*, rank=2, momentum="0.3", forward="return F.silu(self.norm(x * 2.0))"):
    return SOURCE.format(rank=rank, momentum=momentum, forward=forward, sizes=SIZES[rank])


def first(source, *, mode="train"):
    study = Study(Problem(name="p", source=source), mode=mode, device="cpu", languages=("cpp",))
    return study.candidates(None, mode="initial", limit=1)[0].source


@pytest.fixture(autouse=True)
def _builds(tmp_path, monkeypatch):
    monkeypatch.setenv("KOPT_BUILD_DIR", str(tmp_path))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_norm_that_keeps_statistics_is_joined_and_moves_them_as_torch_does(rank):
    source = source_of(rank=rank)
    text = first(source)
    assert "fused_0" in text
    assert "F.batch_norm" not in text
    torch.manual_seed(0)
    old, x = made(source).Model(), made(source).get_inputs()[0]
    new = made(text).ModelNew()
    new.load_state_dict(old.state_dict())
    with torch.no_grad():
        for step in range(3):
            torch.testing.assert_close(new(x + step), old(x + step), rtol=1e-5, atol=1e-5)
    for name, value in old.state_dict().items():
        torch.testing.assert_close(new.state_dict()[name], value, rtol=1e-5, atol=1e-6)


def test_one_norm_used_twice_moves_its_statistics_in_order():
    source = source_of(forward="return self.norm(self.norm(x) * 3.0)")
    torch.manual_seed(0)
    old, x = made(source).Model(), made(source).get_inputs()[0]
    new = made(first(source)).ModelNew()
    new.load_state_dict(old.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(x), old(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(new.norm.running_var, old.norm.running_var, rtol=1e-4, atol=1e-5)
    assert new.norm.num_batches_tracked == 2


def test_a_cumulative_average_depends_on_a_counter_and_is_said_to():
    with pytest.raises(NotRewritable, match="data-dependent"):
        first(source_of(momentum="None"))


def test_in_eval_mode_nothing_is_moved():
    assert "running_mean.mul_" not in first(source_of(), mode="eval")
