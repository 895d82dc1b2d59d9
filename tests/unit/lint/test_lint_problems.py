"""Whole problems linted, in real processes on the `cpu` device: one fault each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.lint.linter import Linter
from kopt.data.lint import LintRow, builtin_table, row_to_json
from kopt.data.problems import resolve
from kopt.data.problems.config import ProblemsConfig
from kopt.problem import Problem

pytestmark = pytest.mark.slow

HEAD = "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
FORWARD = "    def forward(self, x):\n        return {0}\n"
INPUT = "\n\ndef get_inputs():\n    return [torch.randn(128, 32)]\n"
UNIFORM = INPUT.replace("randn", "rand")


@pytest.fixture(scope="module")
def linter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Linter]:
    made = Linter(EvaluateConfig(), device="cpu", cache_dir=tmp_path_factory.mktemp("cache"))
    yield made
    made.close()


def lint(linter: Linter, body: str, inputs: str = INPUT) -> LintRow:
    return linter.lint(Problem(name="mine", source=HEAD + body + inputs))


def line(row: LintRow, tag: str) -> str:
    (found,) = [remark.line for remark in row.remarks if remark.tag == tag]
    return found


def test_an_honest_problem_is_clean(linter: Linter) -> None:
    row = lint(linter, FORWARD.format("torch.tanh(x) * x.exp()"))
    assert row.tags == ()
    assert row.degenerate == ""


def test_zeros_pass_where_a_mean_is_taken_from_itself(linter: Linter) -> None:
    row = lint(
        linter, FORWARD.format("x.sum(1, keepdim=True) - x.sum(1, keepdim=True).mean(1, True)")
    )
    assert {"zeros", "constant", "mean", "repeated", "ignored_input"} <= set(row.tags)
    assert row.degenerate == "an answer of zeros passes on any inputs"


def test_an_input_that_passes_on_its_own_inputs_alone_is_not_degenerate(linter: Linter) -> None:
    row = lint(linter, FORWARD.format("torch.relu(x)"), UNIFORM)
    assert row.tags == ("identity", "no_op")
    assert "hidden ones refuse it" in line(row, "identity")
    assert "on its own inputs: relu in line 7" in line(row, "no_op")
    assert row.degenerate == ""


def test_dead_work_and_what_it_ignores_is_named(linter: Linter) -> None:
    body = """\
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(32, 32)
        self.lost = nn.Linear(32, 32)

    def forward(self, x, y):
        hidden = self.used(x)
        other = self.lost(hidden)
        return hidden.tanh()
"""
    inputs = INPUT.replace("]", ", torch.randn(128, 32)]")
    row = lint(linter, body, inputs)
    assert row.tags == ("ignored_input", "ignored_parameter", "dead_op")
    assert line(row, "ignored_input") == "the output does not depend on input 1"
    assert line(row, "ignored_parameter") == "the output does not depend on lost.weight, lost.bias"
    assert "in line 13 `other = self.lost(hidden)`" in line(row, "dead_op")
    assert row.degenerate.startswith("never used")


def test_training_mode_state_and_a_cancelled_bias_are_seen(linter: Linter) -> None:
    body = """\
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
        self.norm = nn.BatchNorm1d(32)

    def forward(self, x):
        return self.norm(self.linear(x))
"""
    row = lint(linter, body)
    assert row.tags == ("ignored_parameter", "ignored_buffer", "stateful")
    assert "moves by less than passes with linear.bias" in line(row, "ignored_parameter")
    assert line(row, "ignored_buffer").endswith("norm.running_mean, norm.running_var")
    assert "norm.num_batches_tracked" in line(row, "stateful")


def test_one_percent_of_a_product_that_dies_out_is_enough(linter: Linter) -> None:
    inputs = UNIFORM.replace("128, 32", "8, 8192")
    row = lint(linter, FORWARD.format("torch.cumprod(x, dim=1)"), inputs)
    assert "81 of 8192 along dimension 1" in line(row, "sample")


@pytest.mark.parametrize(
    ("body", "tag"),
    [
        (FORWARD.format("torch.dropout(x, 0.5, True)"), "random"),
        (
            "    count = 0\n"
            + FORWARD.format("x * self.count + x.sin()").replace(
                "return", "self.count += 1\n        return"
            ),
            "hidden_state",
        ),
        (FORWARD.format("x.sin() + __import__('os').urandom(2)[0]"), "nondeterministic"),
        (FORWARD.format("x / 0"), "not_finite"),
        (FORWARD.format("x.no_such_method()"), "broken"),
        (FORWARD.format("__import__('os')._exit(3)"), "broken"),
    ],
)
def test_chance_state_and_faults_have_a_tag_each(linter: Linter, body: str, tag: str) -> None:
    assert tag in lint(linter, body).tags


def test_a_problem_without_inputs_is_a_constant(linter: Linter) -> None:
    body = "    def forward(self):\n        return torch.arange(4.0)\n"
    row = lint(linter, body, "\n\ndef get_inputs():\n    return []\n")
    assert "constant" in row.tags
    assert row.degenerate


def test_equal_lints_give_equal_rows_and_the_shipped_table_comes_out_again(linter: Linter) -> None:
    for problem in resolve(["builtin/linear_row_sum", "builtin/cross_entropy"], ProblemsConfig()):
        assert row_to_json(linter.lint(problem)) == row_to_json(builtin_table()[problem.name])
