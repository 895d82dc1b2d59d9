"""Batch norms that keep running statistics, opened: the norm, and what it does to the module.

As one call such a norm can be joined with nothing. Opened, its mean and variance are results of
the graph like any other, a generated kernel computes them on its way, and forward's last lines
move the buffers by them as torch does.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.graph import (
    Builder,
    argument,
    aten,
    calls,
    copied,
    replace,
    shape,
    tensor,
    updates_statistics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """buffer = (1 - momentum) · buffer + momentum · result."""

    buffer: str
    """Placeholder of the graph."""
    momentum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A graph without norms that change their module."""

    graph: fx.GraphModule
    """It gives what forward gives, and then one result for each movement."""
    movements: tuple[Movement, ...]
    statistics: frozenset[fx.Node]
    """Calls that are cheap only within a generated kernel."""


def opened(module: fx.GraphModule, mode: FakeTensorMode) -> Opened | None:
    """Return a copy with its batch norms opened; None where there is none, or one cannot be."""
    result = copied(module)
    norms = [node for node in calls(result) if updates_statistics(node)]
    if not norms or not all(_can_be_opened(node) for node in norms):
        return None
    movements: list[Movement] = []
    results: list[fx.Node] = []
    made: set[fx.Node] = set()
    for node in norms:
        make = Builder(result, node, mode)
        mean, variance = _statistics(make, node)
        weight, bias = (argument(node, name) for name in ("weight", "bias"))
        x, rest = node.args[0], node.args[6:]
        training = argument(node, "training")
        plain = make(aten.batch_norm.default, x, weight, bias, None, None, training, *rest)
        momentum = float(argument(node, "momentum"))
        for name, value in (("running_mean", mean), ("running_var", variance)):
            movements.append(Movement(buffer=argument(node, name).name, momentum=momentum))
            results.append(value)
        made.update(make.made)
        replace(node, plain)
        result.graph.erase_node(node)
    last = result.graph.output_node()
    given = last.args[0]
    assert isinstance(given, tuple | list)
    last.args = ((*given, *results),)
    return Opened(graph=result, movements=tuple(movements), statistics=frozenset(made))


def _can_be_opened(node: fx.Node) -> bool:
    if node.target is not aten.batch_norm.default or argument(node, "momentum") is None:
        return False
    x = node.args[0]
    assert isinstance(x, fx.Node)
    kept = (argument(node, "running_mean"), argument(node, "running_var"))
    same = all(tensor(each).dtype == tensor(x).dtype for each in kept)
    buffers = all(each.op == "placeholder" and len(each.users) == 1 for each in kept)
    return same and buffers and prod(shape(x)) > shape(x)[1]


def _statistics(make: Builder, node: fx.Node) -> tuple[fx.Node, fx.Node]:
    """Return the mean and the unbiased variance of each channel, as a kernel's norm has them."""
    x = node.args[0]
    assert isinstance(x, fx.Node)
    sizes = shape(x)
    dims = [dim for dim in range(len(sizes)) if dim != 1]
    count = prod(sizes[dim] for dim in dims)
    mean = make.reduce(aten.mean.dim, x, dims)
    centred = make(aten.sub.Tensor, x, mean)
    squares = make(aten.mul.Tensor, centred, centred)
    variance = make.reduce(aten.mean.dim, squares, dims)
    variance = make(aten.mul.Tensor, variance, count / (count - 1))
    flat = [sizes[1]]
    return (
        make(aten.reshape.default, mean, flat, name="batch_mean"),
        make(aten.reshape.default, variance, flat, name="batch_var"),
    )
