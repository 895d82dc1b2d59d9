"""The table of lowerings: which function writes an ATen overload as formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Scalar

Argument: TypeAlias = Any
"""One argument of an ATen op: an `Expr` for a tensor, else what stands in the graph."""
Lowered = Expr | tuple[Expr | None, ...]
Lowering = Callable[..., Lowered]

LOWERINGS: dict[str, Lowering] = {}
"""From an overload's name (`aten.add.Tensor`) to its lowering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a lowering may know of the op besides its arguments."""

    builder: Builder
    out_shape: tuple[int, ...]
    """Shape of the (first) result."""
    out_dtype: torch.dtype
    """Dtype of the (first) result."""

    def full(self, number: Scalar, dtype: torch.dtype, shape: tuple[int, ...] = ()) -> Expr:
        """Return a constant."""
        return Expr(self.builder, self.builder.const(number, dtype, shape))


def lowers(*overloads: str) -> Callable[[Lowering], Lowering]:
    """Return a decorator that files a function `(context, *args, **kwargs)` under overloads.

    Tensor arguments arrive as `Expr`, all others as they stand in the graph.
    """

    def file(function: Lowering) -> Lowering:
        for overload in overloads:
            if overload in LOWERINGS:
                raise ValueError(f"two lowerings for {overload}")
            LOWERINGS[overload] = function
        return function

    return file


def floating(context: Context, arg: Argument) -> Expr:
    """Return an argument as an Expr of the result's dtype (numbers become constants)."""
    if isinstance(arg, Expr):
        return arg.to(context.out_dtype)
    return context.full(arg, context.out_dtype)
