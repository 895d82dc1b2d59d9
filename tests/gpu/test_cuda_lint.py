"""The lint on a GPU: the same remarks as on the CPU, and a faulted context costs one call alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.lint.linter import Linter
from kopt.problem import Problem

pytestmark = pytest.mark.gpu

HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
INPUT = "\n\ndef get_inputs():\n    return [torch.rand(128, 32)]\n"


@pytest.fixture(scope="module")
def linter(new_cache) -> Iterator[Linter]:
    made = Linter(EvaluateConfig(), device="cuda", cache_dir=new_cache())
    yield made
    made.close()


def test_an_identity_and_a_dead_operation_are_found(linter: Linter) -> None:
    body = "    def forward(self, x):\n        lost = x.exp()\n        return torch.relu(x)\n"
    row = linter.lint(Problem(name="mine", source=HEAD + body + INPUT))
    assert row.tags == ("identity", "dead_op", "no_op")


def test_an_index_out_of_bounds_is_a_reaction_and_the_rest_is_still_looked_at(
    linter: Linter,
) -> None:
    body = """\
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.arange(128))
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x):
        return x[self.rows] * self.scale + 1
"""
    row = linter.lint(Problem(name="mine", source=HEAD + body + INPUT))
    assert "broken" not in row.tags
    assert "ignored_buffer" not in row.tags
    assert "ignored_parameter" not in row.tags
