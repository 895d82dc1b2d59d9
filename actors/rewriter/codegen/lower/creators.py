"""Tensors made of numbers alone: each kernel makes what it reads of them anew, for nothing.

Kept in memory, each would be a launch of its own, and traffic: a causal mask is two ranges and a
constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Scalar

_Number = Callable[[tuple[Any, ...]], Any]
_CONSTANTS: dict[str, _Number] = {
    **dict.fromkeys(("aten.full.default", "aten.full_like.default"), lambda args: args[1]),
    "aten.new_full.default": lambda args: args[2],
    "aten.scalar_tensor.default": lambda args: args[0],
    **dict.fromkeys(
        ("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default"), lambda args: 0
    ),
    **dict.fromkeys(
        ("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default"), lambda args: 1
    ),
}
_RANGES: dict[str, _Number] = {
    "aten.arange.default": lambda args: (0, 1),
    "aten.arange.start": lambda args: (args[0], 1),
    "aten.arange.start_step": lambda args: (args[0], (*args, 1)[2]),
}
"""First number and step."""


def created(builder: Builder, node: fx.Node) -> Expr | None:
    """Return the values of a node that is made of numbers alone; None of one that is to be read."""
    target, held = str(node.target), node.meta.get("val")
    if not builder.creates or node.op != "call_function":
        return None
    if not isinstance(held, torch.Tensor) or not held.numel():
        return None
    shape = tuple(int(size) for size in held.shape)
    if target in _CONSTANTS:
        number = _CONSTANTS[target](node.args)
        if not isinstance(number, int | float):
            return None
        return Expr(builder, builder.const(_as(number, held.dtype), held.dtype, shape))
    if target in _RANGES:
        start, step = _RANGES[target](node.args)
        if type(start) is int and type(step) is int:
            return Expr(builder, builder.iota(shape, 0, start=start, step=step)).to(held.dtype)
    return None


def _as(number: Scalar, dtype: torch.dtype) -> Scalar:
    if dtype == torch.bool:
        return bool(number)
    return float(number) if dtype.is_floating_point else int(number)


def is_created(node: fx.Node) -> bool:
    """Return whether a node is made of numbers alone."""
    return created(Builder(), node) is not None
