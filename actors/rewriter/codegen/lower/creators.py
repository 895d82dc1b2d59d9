"""Tensors made of numbers alone: each kernel makes what it reads of them anew, for nothing.

Kept in memory, each would be a launch of its own, and traffic: a causal mask is two ranges and a
constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr

_NUMBERS: Mapping[str, Callable[..., Any]] = {
    "aten.full.default": lambda size, number: number,
    "aten.full_like.default": lambda like, number: number,
    "aten.new_full.default": lambda like, size, number: number,
    "aten.scalar_tensor.default": lambda number: number,
    "aten.zeros.default": lambda size: 0,
    "aten.zeros_like.default": lambda like: 0,
    "aten.new_zeros.default": lambda like, size: 0,
    "aten.ones.default": lambda size: 1,
    "aten.ones_like.default": lambda like: 1,
    "aten.new_ones.default": lambda like, size: 1,
}
"""The one number of each overload, from its arguments."""
_RANGES: Mapping[str, Callable[..., tuple[Any, Any]]] = {
    "aten.arange.default": lambda end: (0, 1),
    "aten.arange.start": lambda start, end: (start, 1),
    "aten.arange.start_step": lambda start, end, step=1: (start, step),
}
"""The first number and the step of each overload, from its arguments."""
_OF_TENSOR = {"dtype", "layout", "device", "pin_memory", "memory_format"}
"""Arguments by name that say of a tensor what its fake says too."""
_MOST = (1 << 31) - 1
"""Of a range: a GPU's kernels count in 32 bits."""


def created(builder: Builder, node: fx.Node) -> Expr | None:
    """Return the values of a node that is made of numbers alone; None of one that is to be read."""
    target, held = str(node.target), node.meta.get("val")
    if not builder.creates or node.op != "call_function" or set(node.kwargs) - _OF_TENSOR:
        return None
    if not isinstance(held, torch.Tensor) or held.numel() == 0:
        return None
    shape = tuple(int(size) for size in held.shape)
    if target in _NUMBERS:
        number = _NUMBERS[target](*node.args)
        if not isinstance(number, int | float):
            return None
        rounded = torch.tensor(number, dtype=held.dtype, device="cpu").item()
        return Expr(builder, builder.const(rounded, held.dtype, shape))
    if target in _RANGES:
        start, step = _RANGES[target](*node.args)
        if type(start) is int and type(step) is int and _is_exact(start, step, held):
            return Expr(builder, builder.iota(shape, 0, start=start, step=step)).to(held.dtype)
    return None


def is_created(node: fx.Node) -> bool:
    """Return whether a node is made of numbers alone."""
    return created(Builder(), node) is not None


def _is_exact(start: int, step: int, held: torch.Tensor) -> bool:
    """Whether a range has nothing to round, in a tensor's dtype."""
    most = max(abs(start), abs(start + step * (held.numel() - 1)))
    if held.dtype.is_floating_point:
        return most * torch.finfo(held.dtype).eps <= 2.0
    return held.dtype is not torch.bool and most <= _MOST
