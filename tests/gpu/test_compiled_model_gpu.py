"""A model compiled by Triton kernels, taken apart and put together on a GPU."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from kopt.actors.compiled.order import Order, carry_out
from kopt.compiled.export import Winner, exported
from kopt.problem import Problem

pytestmark = pytest.mark.gpu

SOURCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 512)
        self.norm = nn.LayerNorm(512)
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 512))

    def forward(self, x):
        h = torch.nn.functional.gelu(self.norm(self.linear(x)) * self.scale)
        return torch.softmax(self.linear(h) + x, dim=-1)


def get_inputs():
    return [torch.randn(1024, 512)]
"""


def test_a_model_of_triton_kernels_is_stitched_to_the_same_bits_and_by_references(
    tmp_path: Path,
) -> None:
    order = Order(
        problem=Problem(name="model", source=SOURCE),
        folder=str(tmp_path / "model"),
        cache=str(tmp_path / "cache"),
        device="cuda",
    )
    apart = carry_out(order, timeout_s=300.0)
    assert apart.cause == "", apart.reason
    assert apart.is_identical is True
    assert {kernel.language for kernel in apart.kernels} == {"triton"}
    assert apart.problems
    assert apart.cut_s < 20.0
    assert apart.recipe is not None
    winners = [
        Winner(
            group=sub.group,
            inputs=sub.inputs,
            source=apart.problems[sub.problem].replace("class Model(", "class ModelNew("),
            name=sub.name,
        )
        for sub in apart.subkernels
        if sub.problem
    ]
    torch.manual_seed(3)
    given = torch.randn(1024, 512, device="cuda")
    for number, chosen in enumerate(([], winners)):
        text = exported(
            SOURCE, apart.recipe, chosen, layouts=apart.layouts, num_arguments=1, mark=f"m{number}"
        )
        path = tmp_path / f"stitched_{number}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        file = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = file
        spec.loader.exec_module(file)
        new = file.ModelNew().cuda()
        torch._dynamo.reset()
        model = file.Model().cuda()
        model.load_state_dict(new.state_dict())
        compiled = torch.compile(model, dynamic=False)
        with torch.no_grad():
            expected, found = compiled(given), new(given)
        assert new._kopt_fits((given,))
        if chosen:
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
        else:
            assert torch.equal(found, expected)
