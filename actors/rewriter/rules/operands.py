"""What rules ask of operands: is it a number, is it constant along a dimension, is it a scale."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypeGuard

from torch import fx

from kopt.actors.rewriter.graph import Aten, aten, has_tensor, is_call, shape, tensor

Operand = fx.Node | int | float


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether this is a plain number (no bool)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_operand(value: object) -> TypeGuard[Operand]:
    """Return whether this is a number, or a node with a floating tensor."""
    if is_number(value):
        return True
    return has_tensor(value) and tensor(value).is_floating_point()  # type: ignore[arg-type]


def aligned(value: Operand, rank: int) -> tuple[int, ...]:
    """Return an operand's sizes as broadcasting sees them: with leading 1s up to rank."""
    sizes = () if is_number(value) else shape(value)  # type: ignore[arg-type]
    return (1,) * (rank - len(sizes)) + sizes


def is_constant_along(value: Operand, dims: Collection[int], rank: int) -> bool:
    """Return whether an operand, broadcast to rank, is the same all along these dimensions."""
    sizes = aligned(value, rank)
    return all(sizes[dim] == 1 for dim in dims)


class Reduction(NamedTuple):
    """A sum or mean in normal form."""

    target: Any
    """aten.sum.dim_IntList or aten.mean.dim."""
    x: fx.Node
    dims: list[int]
    """Sorted, not negative."""
    keepdim: bool


def reduction(node: fx.Node) -> Reduction:
    """Read a sum, mean, maximum or minimum in normal form."""
    args: Any = node.args
    return Reduction(node.target, args[0], list(args[1]), bool(args[2]))


class Scaled(NamedTuple):
    """inner · factor, or inner / factor."""

    inner: fx.Node
    factor: Operand
    divide: bool

    @property
    def target(self) -> Aten:
        """The call that scales."""
        return aten.div.Tensor if self.divide else aten.mul.Tensor


def scaled(node: object) -> list[Scaled]:
    """Return the ways to read a call as a tensor of its own shape times or over a factor."""
    if not is_call(node, aten.mul.Tensor, aten.div.Tensor):
        return []
    assert isinstance(node, fx.Node)
    left, right = node.args
    divide = node.target is aten.div.Tensor
    ways = []
    if _spans(left, node) and is_operand(right):
        ways.append(Scaled(left, right, divide))  # type: ignore[arg-type]
    if not divide and _spans(right, node) and is_operand(left):
        ways.append(Scaled(right, left, False))  # type: ignore[arg-type]  # noqa: FBT003
    return ways


class Shifted(NamedTuple):
    """inner + sign·term."""

    inner: fx.Node
    term: Operand
    sign: int
    """+1 or -1: of the term."""
    inner_sign: int
    """+1 or -1: of inner."""


def shifted(node: object) -> list[Shifted]:
    """Return the ways to read a call as a tensor of its own shape plus or minus a term."""
    if is_call(node, aten.rsub.Scalar):
        assert isinstance(node, fx.Node)
        inner, number = node.args[:2]
        if len(node.args) == 2 and not node.kwargs and is_number(number):
            return [Shifted(inner, number, 1, -1)]  # type: ignore[arg-type]
        return []
    if not is_call(node, aten.add.Tensor, aten.sub.Tensor):
        return []
    assert isinstance(node, fx.Node)
    if node.kwargs or len(node.args) != 2:
        return []
    left, right = node.args
    sign = 1 if node.target is aten.add.Tensor else -1
    ways = []
    if _spans(left, node) and is_operand(right):
        ways.append(Shifted(left, right, sign, 1))  # type: ignore[arg-type]
    if _spans(right, node) and is_operand(left):
        ways.append(Shifted(right, left, 1, sign))  # type: ignore[arg-type]
    return ways


def _spans(value: object, node: fx.Node) -> bool:
    """Whether an operand has the result's own shape and dtype."""
    return (
        has_tensor(value)
        and shape(value) == shape(node)  # type: ignore[arg-type]
        and tensor(value).dtype == tensor(node).dtype  # type: ignore[arg-type]
    )
