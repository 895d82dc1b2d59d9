"""Sums and means go through sums and constant factors: reduce first, then scale or shift."""

from __future__ import annotations

from math import prod

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder, aten, is_call, shape
from kopt.actors.rewriter.rules.operands import (
    Operand,
    aligned,
    is_constant_along,
    is_number,
    reduction,
    scaled,
    shifted,
)
from kopt.actors.rewriter.rules.rule import rule

SUMS = (aten.sum.dim_IntList, aten.mean.dim)


def reduced_operand(
    make: Builder,
    target: Aten,
    value: Operand,
    *,
    dims: list[int],
    sizes: tuple[int, ...],
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
        value = make.reduce(target, value, inner)
    return value if repeat == 1 else make(aten.mul.Tensor, value, repeat)


def finished(make: Builder, node: fx.Node, result: fx.Node, *, rest: list[int]) -> fx.Node:
    """Reduce what is left to reduce, and give the result the shape of the call it replaces.

    Args:
        make: adds the calls.
        node: a sum or mean.
        result: with some of its dimensions reduced and kept at 1.
        rest: the dimensions that are still to be reduced.
    """
    total = reduction(node)
    if rest:
        result = make.reduce(total.target, result, rest)
    return result if total.keepdim else make(aten.reshape.default, result, list(shape(node)))


@rule(*SUMS)
def factor_out_of_sum(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ (s·y) = s·Σ y where s does not change along what is summed.

    Source: KernelBench level 2, problems 14 and 44.
    """
    total = reduction(node)
    for way in scaled(total.x):
        rank = len(shape(way.inner))
        free = [d for d in total.dims if is_constant_along(way.factor, [d], rank)]
        if not free:
            continue
        inner = make.reduce(total.target, way.inner, free)
        result = make(way.target, inner, way.factor)
        return finished(make, node, result, rest=[d for d in total.dims if d not in free])
    return None


@rule(*SUMS)
def term_out_of_sum(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ (y ± c) = Σ y ± Σ c; where c is smaller than y, its own sum costs next to nothing.

    Source: KernelBench level 2, problem 51.
    """
    total = reduction(node)
    for way in shifted(total.x):
        inner = make.reduce(total.target, way.inner, total.dims)
        term = reduced_operand(
            make, total.target, way.term, dims=total.dims, sizes=shape(way.inner)
        )
        if way.inner_sign > 0:
            target = aten.add.Tensor if way.sign > 0 else aten.sub.Tensor
            result = make(target, inner, term)
        elif is_number(term):
            result = make(aten.rsub.Scalar, inner, term)
        else:
            result = make(aten.sub.Tensor, term, inner)
        return finished(make, node, result, rest=[])
    return None


@rule(*SUMS)
def sum_of_sums(make: Builder, node: fx.Node) -> fx.Node | None:
    """Σ_i Σ_j y = Σ_ij y: reductions of one kind, one after the other, are one."""
    outer = reduction(node)
    if not is_call(outer.x, outer.target):
        return None
    inner = reduction(outer.x)
    if not inner.keepdim:
        return None
    both = sorted({*inner.dims, *outer.dims})
    return finished(make, node, make.reduce(outer.target, inner.x, both), rest=[])
