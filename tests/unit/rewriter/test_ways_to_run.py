"""Candidates that run by torch.compile or as a CUDA graph, and those for graphs not seen."""

import ast
import sys
import types

import pytest
import torch

from kopt.actors.rewriter.plan import Plan, plan_of
from kopt.actors.rewriter.study import Study
from kopt.actors.rewriter.verbatim import verbatim_candidates
from kopt.problem import Problem
from kopt.static_check import static_check

HEAD = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"
MANY = (
    HEAD
    + "    def __init__(self):\n        super().__init__()\n"
    + "        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) "
    + "for _ in range(9)))\n\n"
    + "    def forward(self, x, scale=2):\n        return self.layers(x) * scale\n\n\n"
    + "def get_inputs():\n    return [torch.rand(4, 8)]\n"
)
BRANCHING = (
    HEAD
    + "    def __init__(self, size):\n        super().__init__()\n"
    + "        self.linear = nn.Linear(size, size)\n\n"
    + "    def grown(self, x):\n        return x + 1 if x.sum() > 0 else x - 1\n\n"
    + "    def forward(self, x):\n        return self.grown(self.linear(x))\n\n\n"
    + "def get_inputs():\n    return [torch.rand(4, 8)]\n\n\n"
    + "def get_init_inputs():\n    return [8]\n"
)


def imported(source, name):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def study_of(source, *, fold="call"):
    problem = Problem(name="p", source=source)
    return Study(problem, mode="train", device="cuda", languages=("torch", "triton"), fold=fold)


def methods_of(source):
    tree = ast.parse(source)
    [made] = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"]
    return {n.name: n for n in made.body if isinstance(n, ast.FunctionDef)}


def check(source, written, *arguments):
    reference, candidate = imported(source, "reference"), imported(written, "candidate")
    torch.manual_seed(3)
    old = reference.Model(*arguments)
    torch.manual_seed(3)
    new = candidate.ModelNew(*arguments)
    with torch.no_grad():
        for inputs in (reference.get_inputs(), [-each for each in reference.get_inputs()]):
            torch.testing.assert_close(new(*inputs), old(*inputs), rtol=1e-5, atol=1e-6)


def test_a_graph_of_many_small_calls_leads_with_its_replay() -> None:
    found = study_of(MANY).candidates(None, mode="initial", limit=6)
    plans = [plan_of(written.source) for written in found]
    assert plans[0] is not None
    assert plans[0].graphed
    assert any(plan is not None and plan.compiled and not plan.graphed for plan in plans)
    assert any(plan is not None and plan == Plan() for plan in plans)
    assert "CUDA graph" in found[0].strategy


def test_replayed_calls_run_one_by_one_where_there_is_no_gpu() -> None:
    written = study_of(MANY).written(Plan(graphed=True))
    assert {"compute", "replay", "capture", "forward"} <= set(methods_of(written.source))
    assert static_check(written.source, language=written.language).passed
    check(MANY, written.source)


@pytest.mark.slow
def test_compiled_calls_give_the_reference_s_results() -> None:
    written = study_of(MANY).written(Plan(compiled=True))
    check(MANY, written.source)


def test_weights_folded_once_are_not_kept_by_a_graph_or_a_compiler() -> None:
    source = MANY.replace("self.layers(x) * scale", "self.layers[0][0](x).sum(1) * scale")
    found = study_of(source, fold="cached").candidates(None, mode="initial", limit=12)
    for written in found:
        made = plan_of(written.source)
        assert made is not None
        if made.compiled or made.graphed:
            assert made.fold == "call"


def test_constants_of_the_host_rule_a_graph_out() -> None:
    source = MANY.replace("self.layers(x) * scale", "self.layers(x) + torch.tensor([1.0, 2.0] * 4)")
    found = study_of(source).candidates(None, mode="initial", limit=12)
    assert not any("CUDA graph" in written.strategy for written in found)


def test_what_cannot_be_seen_is_run_in_other_ways() -> None:
    found = verbatim_candidates(Problem(name="p", source=BRANCHING), mode="train")
    plans = [plan_of(written.source) for written in found]
    assert plans == [
        Plan(algebra=False, compiled=True),
        Plan(algebra=False, graphed=True),
        Plan(algebra=False),
    ]
    for written in found[1:]:
        assert "get_inputs" not in written.source
        check(BRANCHING, written.source, 8)


def test_what_is_given_no_tensor_alone_has_no_graph() -> None:
    source = BRANCHING.replace("[torch.rand(4, 8)]", "[torch.rand(4, 8), 3]").replace(
        "forward(self, x)", "forward(self, x, n)"
    )
    found = verbatim_candidates(Problem(name="p", source=source), mode="train")
    assert [plan_of(w.source) for w in found] == [
        Plan(algebra=False, compiled=True),
        Plan(algebra=False),
    ]
