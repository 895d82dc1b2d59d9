"""Models compiled, taken apart and put together again on this CPU; each compiles a few kernels."""

import functools
import importlib.util
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from kopt.actors.compiled.take_apart import Subject, take_apart
from kopt.compiled.export import Winner, exported
from kopt.compiled.record import Apart, from_json, to_json
from kopt.compiled.wishes import Wish

pytestmark = pytest.mark.slow

TRANSFORMER = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.first(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = torch.softmax(q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5, dim=-1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Block(64, 4), Block(64, 4))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(2, 32, 64)]
"""
NORMS = """
import torch
import torch.nn as nn

SCALE = torch.linspace(0.5, 1.5, 48)


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.shift = torch.ones(width)
        self.register_buffer("mask", torch.rand(width) > 0.5)

    def forward(self, x, pair):
        h = torch.relu(self.one(x)) * SCALE + torch.tensor([float(i) for i in range(48)])
        h = torch.where(self.mask, self.norm(h), self.shift)
        return {"out": self.two(h) + pair[0], "given": x, "twice": [h * 2, 3]}


def get_inputs():
    return [torch.randn(16, 48), (torch.randn(48), 2.0)]


def get_init_inputs():
    return [48]
"""
CONVOLUTIONS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.Hardswish(), nn.AdaptiveAvgPool2d(1),
        )

    def forward(self, x):
        return self.net(x).flatten(1)


def get_inputs():
    return [torch.randn(4, 3, 20, 20)]
"""


def imported(source: str, name: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def made(file: ModuleType, name: str = "Model") -> Any:
    torch.manual_seed(1)
    init = file.get_init_inputs() if hasattr(file, "get_init_inputs") else []
    return getattr(file, name)(*init)


def inputs(file: ModuleType, seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    return tuple(file.get_inputs())


def apart_of(
    source: str, folder: Path, *, merge: bool = True, wishes: tuple[Wish, ...] = ()
) -> Apart:
    file = imported(source, "subject", folder)
    return take_apart(
        Subject(
            name="subject",
            file=file,
            model=made(file),
            given=inputs(file, 0),
            again=inputs(file, 42),
        ),
        merge=merge,
        wishes=wishes,
    )


@pytest.fixture(scope="module")
def taken_apart(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Apart]:
    """Returns a function that takes a model apart, each once for all tests, which only read it."""
    return functools.cache(lambda source: apart_of(source, tmp_path_factory.mktemp("apart")))


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, list | tuple):
        return [leaf for item in tree for leaf in leaves(item)]
    return [tree]


def same(left: Any, right: Any) -> bool:
    pairs = zip(leaves(left), leaves(right), strict=True)
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def stitched(source: str, apart: Apart, winners: list[Winner], folder: Path) -> ModuleType:
    assert apart.recipe is not None
    count = len({each.path[0] for each in apart.recipe.given})
    text = exported(
        textwrap.dedent(source),
        apart.recipe,
        winners,
        layouts=apart.layouts,
        num_arguments=count,
        mark="test",
        words="a test",
    )
    return imported(text, "stitched", folder)


@pytest.mark.parametrize("source", [TRANSFORMER, NORMS, CONVOLUTIONS])
def test_the_exported_file_with_the_original_kernels_gives_the_compiled_model_s_bits(
    source: str, tmp_path: Path, taken_apart: Callable[[str], Apart]
) -> None:
    apart = taken_apart(source)
    assert apart.cause == "", apart.reason
    assert apart.is_identical is True
    assert from_json(json.dumps(to_json(apart)), where="here") == apart
    file = stitched(source, apart, [], tmp_path)
    model, new = made(file), made(file, "ModelNew")
    torch._dynamo.reset()
    compiled = torch.compile(model, dynamic=False)
    for seed in (0, 7):
        given = inputs(file, seed)
        with torch.no_grad():
            expected, found = compiled(*given), new(*given)
        assert new._kopt_fits(given)
        assert same(expected, found)
    # What a call changes in the model (running statistics) is changed alike.
    assert same(dict(model.named_buffers()), dict(new.named_buffers()))


def references_as_winners(apart: Apart) -> list[Winner]:
    """Each problem's own reference, to be put in its kernel's place."""
    return [
        Winner(
            group=sub.group,
            inputs=sub.inputs,
            source=apart.problems[sub.problem].replace("class Model(", "class ModelNew("),
            name=sub.name,
        )
        for sub in apart.subkernels
        if sub.problem
    ]


def test_every_problem_s_reference_put_in_its_kernel_s_place_gives_the_model(
    tmp_path: Path, taken_apart: Callable[[str], Apart]
) -> None:
    apart = taken_apart(TRANSFORMER)
    winners = references_as_winners(apart)
    assert len(winners) == sum(kernel.launches for kernel in apart.kernels)
    # The two layers compute the same: they share their problems.
    assert len(apart.problems) < len(winners)
    file = stitched(TRANSFORMER, apart, winners, tmp_path)
    model, new, given = made(file), made(file, "ModelNew"), inputs(file, 3)
    new.load_state_dict({k: v + 0.01 for k, v in model.state_dict().items()})
    model.load_state_dict({k: v + 0.01 for k, v in model.state_dict().items()})
    with torch.no_grad():
        assert new._kopt_fits(given)
        torch.testing.assert_close(new(*given), model(*given), rtol=1e-4, atol=1e-4)


def test_other_sizes_and_another_mode_run_the_model_as_it_was_written(
    tmp_path: Path, taken_apart: Callable[[str], Apart]
) -> None:
    apart = taken_apart(CONVOLUTIONS)
    file = stitched(CONVOLUTIONS, apart, [], tmp_path)
    model, new = made(file), made(file, "ModelNew")
    other = torch.randn(2, 3, 11, 11)
    with torch.no_grad():
        assert torch.equal(new(other), model(other))
        assert torch.equal(new.eval()(other), model.eval()(other))
    assert {"net.1.running_mean", "net.5.running_var"} <= set(apart.changed)


# On a CPU Inductor puts loops that follow each other into one kernel, up to so many arguments.
ADJACENT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(torch.softmax(x, dim=-1), dim=0)


def get_inputs():
    return [torch.randn(64, 48)]
"""


def test_launches_are_cut_as_a_model_wishes_and_stitch_to_the_same_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch._inductor.codegen.cpp.CppScheduling.MAX_FUSED_KERNEL_ARGS_NUM", 1)
    ruled = apart_of(ADJACENT, tmp_path)
    assert apart_of(ADJACENT, tmp_path, merge=False).choices == ()
    assert len(ruled.subkernels) == 1, "the rule fuses all"
    first, *others = ruled.choices
    assert others
    assert (first.rule_fuses, first.before.share is not None) == (True, True)
    assert {"amax", "exp"} <= set(first.before.operations)
    wish = Wish(place=first.place, kernel=first.behind.kernels[0], fuse=False, reason="unlike")
    apart = apart_of(ADJACENT, tmp_path, wishes=(wish,))
    assert [sub.group.places for sub in apart.subkernels] == [
        first.before.places,
        first.behind.places,
    ]
    assert from_json(json.dumps(to_json(apart)), where="here") == apart
    assert [choice.decided_by for choice in apart.choices] == ["model", *["rule"] * len(others)]
    winners = references_as_winners(apart)
    assert len(winners) == len(apart.subkernels)
    file = stitched(ADJACENT, apart, winners, tmp_path)
    given = inputs(file, 3)
    torch.testing.assert_close(made(file, "ModelNew")(*given), made(file)(*given))


BREAKS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        y = torch.relu(x) + 1
        if y.sum() > 0:
            y = y * 2
        return torch.sigmoid(y)


def get_inputs():
    return [torch.randn(8, 8)]
"""
RANDOM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(torch.relu(x), 0.5, training=True)


def get_inputs():
    return [torch.randn(8, 8)]
"""
LIBRARY = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, y):
        return x @ y


def get_inputs():
    return [torch.randn(8, 8), torch.randn(8, 8)]
"""
NOTHING = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.randn(8, 8)]
"""
RAISES = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x @ torch.ones(7)


def get_inputs():
    return [torch.randn(8, 8)]
"""


@pytest.mark.parametrize(
    ("source", "cause", "reason"),
    [
        (BREAKS, "graph_breaks", "the graph breaks into 2 piece"),
        (RANDOM, "random", "draws random numbers"),
        (LIBRARY, "no_generated_kernels", "only 1 library call"),
        (NOTHING, "no_generated_kernels", "made no graph"),
        (RAISES, "no_compile", "Error"),
    ],
)
def test_what_cannot_be_taken_apart_is_told_with_its_cause(
    source: str, cause: str, reason: str, tmp_path: Path
) -> None:
    apart = apart_of(source, tmp_path)
    assert apart.cause == cause
    assert reason in apart.reason
    assert apart.problems == {}
