"""Sums and means go through sums and constant factors: reduce first, then scale or shift."""

from __future__ import annotations

from math import prod
from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.operands import (
    Operand,
    aligned,
    is_constant_along,
    is_number,
    scaled,
    shifted,
)
from kopt.actors.rewriter.rules.rule import rule

SUMS = (aten.sum.dim_IntList, aten.mean.dim)


def reduced_operand(
    make: Builder,
    target: Any,
    value: Operand,
    *,
    dims: list[int],
    sizes: tuple[int, ...],  # noqa: ANN401
) -> Operand:
    """Reduce an operand as it would be reduced if it were broadcast to `sizes` first.

    Returns:
        A number, or a node of the broadcast rank or less with the reduced dimensions at 1.
    """
    rank = len(sizes)
    own = aligned(value, rank)
    spread = prod(sizes[d] for d in dims if own[d] == 1)
    repeat = spread if target is aten.sum.dim_IntList else 1
    if is_number(value):
        return value * repeat
    assert isinstance(value, fx.Node)
    offset = rank - len(shape(value))
    inner = [d - offset for d in dims if own[d] > 1]
    if inner:
        value = make(target, value, inner, True)
    return value if repeat == 1 else make(aten.mul.Tensor, value, repeat)


@rule(*SUMS)
def factor_out_of_sum(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ (s·y) = s·Σ y where s does not change along what is summed.

    Source: KernelBench level 2, problems 14 and 44.
    """
    product, dims, keepdim = node.args
    for way in scaled(product):
        rank = len(shape(way.inner))
        free = [d for d in dims if is_constant_along(way.factor, [d], rank)]  # type: ignore[union-attr]
        if not free:
            continue
        rest = [d for d in dims if d not in free]  # type: ignore[union-attr]
        inner = make(node.target, way.inner, free, True)  # type: ignore[arg-type]
        result = make(way.target, inner, way.factor)
        if rest:
            result = make(node.target, result, rest, True)  # type: ignore[arg-type]
        return result if keepdim else make(aten.reshape.default, result, list(shape(node)))
    return None


@rule(*SUMS)
def term_out_of_sum(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ (y ± c) = Σ y ± Σ c; where c is smaller than y, its own sum costs next to nothing.

    Source: KernelBench level 2, problem 51.
    """
    total, dims, keepdim = node.args
    for way in shifted(total):
        sizes = shape(way.inner)
        result = _sum_of_terms(make, node, way, dims=list(dims), sizes=sizes)  # type: ignore[arg-type]
        return result if keepdim else make(aten.reshape.default, result, list(shape(node)))
    return None


def _sum_of_terms(
    make: Builder,
    node: fx.Node,
    way: Any,
    *,
    dims: list[int],
    sizes: tuple[int, ...],  # noqa: ANN401
) -> fx.Node:
    inner = make(node.target, way.inner, dims, True)  # type: ignore[arg-type]
    term = reduced_operand(make, node.target, way.term, dims=dims, sizes=sizes)
    if way.inner_sign < 0:
        if is_number(term):
            return make(aten.rsub.Scalar, inner, term)
        return make(aten.sub.Tensor, term, inner)
    return make(aten.add.Tensor if way.sign > 0 else aten.sub.Tensor, inner, term)


@rule(*SUMS)
def sum_of_sums(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_i Σ_j y = Σ_ij y: reductions of one kind, one after the other, are one."""
    inner, dims, keepdim = node.args
    if not is_call(inner, node.target):
        return None
    assert isinstance(inner, fx.Node)
    y, first, kept = inner.args
    if not kept:
        return None
    assert isinstance(y, fx.Node)
    both = sorted({*first, *dims})  # type: ignore[misc]
    made = make(node.target, y, both, True)  # type: ignore[arg-type]
    return made if keepdim else make(aten.reshape.default, made, list(shape(node)))
