"""Maxima go through functions that never fall: pick first, on fewer elements compute."""

from __future__ import annotations

from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder, argument, aten, is_call, shape, tensor
from kopt.actors.rewriter.rules.clamp_chains import CLAMPS
from kopt.actors.rewriter.rules.operands import is_constant_along, is_number, scaled, shifted
from kopt.actors.rewriter.rules.ranges import clamp_bounds
from kopt.actors.rewriter.rules.rule import rule

EXTREMA = (aten.amax.default, aten.amin.default)
MAX_POOL = (aten.max_pool1d.default, aten.max_pool2d.default, aten.max_pool3d.default)
RISING = frozenset(
    (
        aten.sigmoid.default,
        aten.tanh.default,
        aten.exp.default,
        aten.hardsigmoid.default,
        aten.softplus.default,
        aten.erf.default,
    )
)
"""Functions of one argument that never fall, with their default parameters."""


@rule(*EXTREMA, *MAX_POOL)
def extremum_of_rising(make: Builder, node: fx.Node) -> fx.Node | None:
    """Max f(y) = f(max y) for a function that never fall: relu, clamp, sigmoid, tanh, exp.

    Max pools likewise: their padding is -∞ and never chosen.
    Source: KernelBench level 2, problems 32 and 8; proved as R27.
    """
    inner = node.args[0]
    if not isinstance(inner, fx.Node) or inner.op != "call_function":
        return None
    rising = (inner.target in RISING and len(inner.args) == 1) or (
        inner.target in CLAMPS and clamp_bounds(inner) is not None
    )
    if not rising or inner.kwargs:
        return None
    y = inner.args[0]
    assert isinstance(y, fx.Node)
    if tensor(y).dtype != tensor(inner).dtype:
        return None
    picked = make.like(node, y, *node.args[1:])
    return make.like(inner, picked, *inner.args[1:])


@rule(*EXTREMA, *MAX_POOL)
def extremum_of_scaled(make: Builder, node: fx.Node) -> fx.Node | None:
    """Max (s·y) = s·max y for a number s > 0; with s < 0 the minimum is picked."""
    for way in scaled(node.args[0]):
        if not is_number(way.factor) or way.factor == 0:
            continue
        target = _target(node)
        if way.factor < 0:
            if target not in EXTREMA:
                continue
            target = EXTREMA[1 - EXTREMA.index(target)]
        named: dict[str, Any] = dict(node.kwargs)
        picked = make(target, way.inner, *node.args[1:], **named)
        return make(way.target, picked, way.factor)
    return None


@rule(*EXTREMA, *MAX_POOL)
def extremum_of_shifted(make: Builder, node: fx.Node) -> fx.Node | None:
    """Max (y + c) = max y + c where c does not change along what is searched."""
    rank = len(shape(node.args[0]))  # type: ignore[arg-type]
    pool = node.target in MAX_POOL
    if pool:
        dims = range(rank - MAX_POOL.index(_target(node)) - 1, rank)
        keepdim = True
    else:
        dims, keepdim = argument(node, "dim"), argument(node, "keepdim")
    for way in shifted(node.args[0]):
        if way.inner_sign < 0 or not is_constant_along(way.term, dims, rank):
            continue
        if not pool and not keepdim and not is_number(way.term):
            picked = make.reduce(_target(node), way.inner, list(dims))
        else:
            picked = make.like(node, way.inner, *node.args[1:])
        target = aten.add.Tensor if way.sign > 0 else aten.sub.Tensor
        result = make(target, picked, way.term)
        return make(aten.reshape.default, result, list(shape(node)))
    return None


@rule(*EXTREMA)
def extremum_of_extremum(make: Builder, node: fx.Node) -> fx.Node | None:
    """max_i max_j y = max_ij y: one search instead of two."""
    inner = node.args[0]
    if not is_call(inner, node.target):
        return None
    assert isinstance(inner, fx.Node)
    if not argument(inner, "keepdim"):
        return None
    dims = sorted({*argument(inner, "dim"), *argument(node, "dim")})
    result = make.reduce(_target(node), inner.args[0], dims)
    return make(aten.reshape.default, result, list(shape(node)))


def _target(node: fx.Node) -> Aten:
    return node.target
