"""Rules are checked in float64 before they are used: wrong ones go, degenerate tasks are named."""

import pytest
import torch

from kopt.actors.rewriter.capture import capture
from kopt.actors.rewriter.graph import aten
from kopt.actors.rewriter.plan import Plan
from kopt.actors.rewriter.proof import Prover
from kopt.actors.rewriter.rewrite import rewritten
from kopt.actors.rewriter.rules import RULES
from kopt.actors.rewriter.rules.rule import Rule
from kopt.actors.rewriter.study import Study
from kopt.problem import Problem

ROW_SUM = "return self.linear(x).sum(dim=1, keepdim=True)"
LAYER = "self.linear = nn.Linear(64, 96)"


def _wrong(make, node):
    """Forget the bias."""
    x, weight, bias = node.args
    return None if bias is None else make(aten.linear.default, x, weight)


@pytest.fixture
def wrong_rule(monkeypatch):
    """Adds a rule to the table that is not true, and that pays by its own account."""
    rule = Rule(
        name="forget_bias",
        targets=frozenset([aten.linear.default]),
        rewrite=_wrong,
        summary="x·Wᵀ + b = x·Wᵀ",
        always=True,
    )
    names = [*RULES, "forget_bias"]
    create = RULES.create
    monkeypatch.setattr(type(RULES), "__iter__", lambda self: iter(names))
    monkeypatch.setattr(
        RULES, "create", lambda name, **k: rule if name == "forget_bias" else create(name, **k)
    )


def _study(problem):
    return Study(problem, mode="train", device="cpu", languages=("torch",))


def test_a_rule_that_is_not_true_is_found_out_and_the_others_are_kept(problem_of, wrong_rule):
    problem = problem_of(
        "return torch.tanh(self.linear(x)), self.other(x).sum(dim=1, keepdim=True)",
        init=LAYER + "\nself.other = nn.Linear(64, 512)",
        inputs=("torch.randn(128, 64)",),
        dtype="float32",
    )
    form = _study(problem).form(Plan())
    assert "forget_bias" not in form.applied
    assert "linear_reduce" in form.applied


def test_rules_that_are_true_stand_the_proof_on_a_small_batch(problem_of):
    problem = problem_of(ROW_SUM, init=LAYER, inputs=("torch.randn(128, 64)",), dtype="float32")
    captured = capture(problem, mode="train")
    _, steps = rewritten(captured.graph, mode=captured.mode, device="cpu")
    assert [step.rule for step in steps] == ["linear_reduce"]
    assert Prover(captured, mode="train").refute(steps) is None


def test_a_reference_that_takes_one_batch_only_is_proved_as_it_is(problem_of):
    problem = problem_of(
        "return self.linear(x.reshape(64, 128)).sum(dim=1, keepdim=True)",
        init="self.linear = nn.Linear(128, 96)",
        inputs=("torch.randn(128, 64)",),
        dtype="float32",
    )
    captured = capture(problem, mode="train")
    _, steps = rewritten(captured.graph, mode=captured.mode, device="cpu")
    assert steps
    assert Prover(captured, mode="train").refute(steps) is None


def test_what_is_too_large_to_be_proved_is_not_rewritten(problem_of, monkeypatch):
    monkeypatch.setattr("kopt.actors.rewriter.proof.MOST_SECONDS", 0.0)
    problem = problem_of(ROW_SUM, init=LAYER, inputs=("torch.randn(128, 64)",), dtype="float32")
    form = _study(problem).form(Plan())
    assert form.applied == ()
    assert "too large to be proved" in form.refused


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("x = x.amax(1, keepdim=True)\nreturn F.gelu(x - x.mean(1, keepdim=True))", "neither"),
        ("return self.linear(torch.zeros_like(x))", "on the inputs"),
        ("return torch.clamp(x, -1.0, 1.0)", ""),
        ("return torch.sigmoid(self.linear(x).sum(1))", ""),
    ],
)
def test_results_that_depend_on_nothing_are_named_as_degenerate(problem_of, forward, words):
    problem = problem_of(forward, init=LAYER, inputs=("torch.randn(128, 64)",), dtype="float32")
    captured = capture(problem, mode="train")
    found = Prover(captured, mode="train").degenerate()
    assert words in found
    assert bool(found) == bool(words)
    written = _study(problem).candidates(None, mode="initial", limit=1)[0]
    assert ("degenerate task" in written.strategy) == bool(words)


def test_random_values_are_wide_and_do_not_repeat_from_row_to_row(problem_of):
    problem = problem_of("return x + 1", inputs=("torch.randn(2000, 1000)",), dtype="float16")
    prover = Prover(capture(problem, mode="train"), mode="train")
    assert prover.degenerate() == ""
    assert all(value.dtype == torch.float64 for draw in prover._draws for value in draw)


def test_what_only_a_small_twin_makes_degenerate_is_not_called_so() -> None:
    source = (
        "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.pool = nn.AvgPool1d(16)\n        self.norm = nn.GroupNorm(4, 4)\n\n"
        "    def forward(self, x):\n        return self.norm(self.pool(x))\n\n\n"
        "def get_inputs():\n    return [torch.randn(8, 4, 128)]\n"
    )
    study = _study(Problem(name="p", source=source))
    assert "degenerate" not in study.written(Plan()).strategy


def test_a_result_that_random_values_make_no_number_is_not_called_degenerate(problem_of) -> None:
    problem = problem_of("return torch.log(-x.square() - 1).sum()")
    assert "degenerate" not in _study(problem).written(Plan()).strategy
