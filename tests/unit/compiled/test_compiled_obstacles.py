"""Which operations of a captured graph draw random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import fx

from kopt.actors.compiled.obstacles import Obstacle, obstacle_of

ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def obstacle(target: Any, *arguments: Any, **named: Any) -> Obstacle | None:
    """What keeps a graph of one operation, with kernels beside it, from being taken apart."""
    graph = fx.Graph()
    tensors = [graph.placeholder(name) for name in "abc"]
    graph.call_function(target, (*tensors[: 3 if target is ATTENTION else 1], *arguments), named)
    code = SimpleNamespace(arguments=[], kernels={"k": 1}, launches=[1], opaque="")
    piece = SimpleNamespace(graph=SimpleNamespace(graph=graph), code=code, arguments=[])
    return obstacle_of(SimpleNamespace(pieces=[piece], breaks=()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((0.0, True), {}), ((), {"dropout_p": 0})]
)
def test_attention_that_drops_nothing_draws_nothing(arguments: tuple, named: dict) -> None:
    assert obstacle(ATTENTION, *arguments, **named) is None


@pytest.mark.parametrize(
    ("target", "arguments", "named"),
    [
        (ATTENTION, (0.1,), {}),
        (ATTENTION, (), {"dropout_p": 0.1}),
        (torch.ops.aten.bernoulli.p, (0.5,), {}),
        (torch.ops.aten.rand_like.default, (), {}),
    ],
)
def test_what_drops_or_draws_is_an_obstacle(target: Any, arguments: tuple, named: dict) -> None:
    found = obstacle(target, *arguments, **named)
    assert found is not None
    assert found.cause == "random"
