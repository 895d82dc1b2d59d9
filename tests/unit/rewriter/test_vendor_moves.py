"""Other ways to call libraries: the same results, tried only where there is something to change."""

import types

import pytest
import torch

from kopt.actors.rewriter.plan import Plan, neighbour_plans, plan_of, safer_plans
from kopt.actors.rewriter.study import Study
from kopt.problem import Problem

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
CHAIN = (
    HEAD
    + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    + "        self.a = nn.Conv2d(3, 8, 3)\n        self.b = nn.Conv2d(8, 4, 3, groups=2)\n\n"
    + "    def forward(self, x):\n        y = self.b(torch.tanh(self.a(x)))\n"
    + "        return y, y.mean(1)\n\n\n"
    + "def get_inputs():\n    return [torch.randn(2, 3, 12, 11)]\n"
)
SKINNY = (
    HEAD
    + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    + "        self.l = nn.Linear(32, {out}, bias={bias})\n\n"
    + "    def forward(self, x):\n        return torch.relu(self.l(x)) * 2\n\n\n"
    + "def get_inputs():\n    return [torch.randn({sizes}, 32)]\n"
)


def study_of(source: str, *, languages=("torch",), fold="call") -> Study:
    problem = Problem(name="p", source=source)
    return Study(problem, mode="train", device="cpu", languages=languages, fold=fold)


def imported(source: str) -> types.ModuleType:
    module = types.ModuleType("candidate")
    exec(compile(source, "candidate", "exec"), module.__dict__)
    return module


def check(source: str, written: str) -> None:
    reference, candidate = imported(source), imported(written)
    torch.manual_seed(3)
    old = reference.Model()
    torch.manual_seed(3)
    new = candidate.ModelNew()
    inputs = reference.get_inputs()
    with torch.no_grad():
        wanted, found = old(*inputs), new(*inputs)
    for one, other in zip(_several(wanted), _several(found), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
        assert other.is_contiguous() == one.is_contiguous()


def _several(result):
    return result if isinstance(result, tuple) else (result,)


def vendor_of(study: Study) -> list[tuple[str, ...]]:
    plans = [plan_of(w.source) for w in study.candidates(None, mode="initial", limit=20)]
    return [plan.vendor for plan in plans if plan is not None and plan.vendor]


def test_convolutions_in_a_chain_keep_their_channels_innermost_to_the_end() -> None:
    study = study_of(CHAIN)
    assert vendor_of(study) == [("channels_last",)]
    written = study.written(Plan(vendor=("channels_last",)))
    assert written.source.count("memory_format=torch.channels_last") == 4
    assert "channels innermost" in written.strategy
    check(CHAIN, written.source)


def test_weights_are_turned_once_where_the_fold_is_cached() -> None:
    study = study_of(CHAIN, fold="cached")
    written = study.written(Plan(vendor=("channels_last",), fold="cached"))
    forward = written.source[written.source.index("def forward") :]
    assert forward.count("memory_format") == 2
    check(CHAIN, written.source)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("sizes", "out"), [("2", 1024), ("2, 3", 1500), ("2000", 8)])
def test_a_skinny_product_is_turned(sizes, out, bias) -> None:
    source = SKINNY.format(sizes=sizes, out=out, bias=bias)
    study = study_of(source)
    assert vendor_of(study) == [("turned_products",)]
    check(source, study.written(Plan(vendor=("turned_products",))).source)


@pytest.mark.parametrize(
    "source",
    [
        SKINNY.format(sizes="100", out=1024, bias=True),
        SKINNY.format(sizes="4", out=512, bias=True),
        CHAIN.replace("self.b(torch.tanh(self.a(x)))", "torch.tanh(self.a(x))"),
    ],
    ids=["no skinny side", "too small to matter", "one convolution"],
)
def test_where_nothing_is_to_be_gained_nothing_is_tried(source) -> None:
    assert vendor_of(study_of(source)) == []


SINGLE = (
    HEAD
    + "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    + "        self.a = nn.{conv}\n\n    def forward(self, x):\n"
    + "        return torch.relu(self.a(x)) * 2\n\n\n"
    + "def get_inputs():\n    return [torch.randn({sizes})]\n"
)


@pytest.mark.parametrize(
    ("conv", "sizes"),
    [
        ("Conv1d(4, 8, 3, stride=2, padding=1, dilation=2)", "2, 4, 33"),
        ("ConvTranspose1d(4, 8, 3, stride=2, padding=1, output_padding=1)", "2, 4, 33"),
        ("ConvTranspose2d(4, 8, 3, stride=2, bias=False)", "2, 4, 13, 9"),
        ("ConvTranspose3d(4, 8, 3, stride=2, groups=2)", "2, 4, 5, 6, 7"),
        ("Conv3d(4, 8, 3, padding=(0, 1, 2))", "2, 4, 5, 6, 7"),
    ],
)
def test_convolutions_of_every_kind_take_their_channels_innermost(conv, sizes) -> None:
    source = SINGLE.format(conv=conv, sizes=sizes)
    written = study_of(source).written(Plan(vendor=("channels_last",)))
    assert "memory_format=torch.channels_last" in written.source
    assert "1d(" not in written.source.split("def forward")[1]
    check(source, written.source)


def test_a_move_is_made_and_taken_back_by_neighbours_and_left_out_after_a_failure() -> None:
    moved = Plan(vendor=("channels_last",))
    assert plan_of(moved.marker()) == moved
    plans = set(neighbour_plans(moved, schedules=[], applied=(), vendor=("channels_last",)))
    assert Plan() in plans
    plans = set(neighbour_plans(Plan(), schedules=[], applied=(), vendor=("channels_last",)))
    assert moved in plans
    assert next(iter(safer_plans(moved, schedules=[], applied=()))) == Plan()
