"""Formulas over values: operators and methods, so that a lowering reads like its definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import ReduceKind, Scalar, ScanKind, Value


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A value together with the builder that can make more of it."""

    builder: Builder
    value: Value

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes, outermost first."""
        return self.value.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype this has in torch."""
        return self.value.dtype

    def __add__(self, other: Operand) -> Expr:
        return self.binary("add", other)

    def __radd__(self, other: Scalar) -> Expr:
        return self.lift(other) + self

    def __sub__(self, other: Operand) -> Expr:
        return self.binary("sub", other)

    def __rsub__(self, other: Scalar) -> Expr:
        return self.lift(other) - self

    def __mul__(self, other: Operand) -> Expr:
        return self.binary("mul", other)

    def __rmul__(self, other: Scalar) -> Expr:
        return self.lift(other) * self

    def __truediv__(self, other: Operand) -> Expr:
        return self.binary("div", other)

    def __rtruediv__(self, other: Scalar) -> Expr:
        return self.lift(other) / self

    def __neg__(self) -> Expr:
        return self.unary("neg")

    def lift(self, other: Operand) -> Expr:
        """Return a number as a constant of this dtype (float32 if this is integral, it not)."""
        if isinstance(other, Expr):
            return other
        dtype = self.dtype
        if isinstance(other, float) and not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        elif dtype == torch.bool and not isinstance(other, bool):
            dtype = torch.int64
        return Expr(self.builder, self.builder.const(other, dtype))

    def unary(self, op: str, *, dtype: torch.dtype | None = None) -> Expr:
        """Return the named scalar function of each element."""
        return Expr(self.builder, self.builder.map(op, self.value, dtype=dtype or self.dtype))

    def binary(self, op: str, other: Operand, *, dtype: torch.dtype | None = None) -> Expr:
        """Return the named function of two; both are first made the same dtype."""
        right = self.lift(other)
        common = torch.promote_types(self.dtype, right.dtype)
        made = self.builder.map(
            op, self.to(common).value, right.to(common).value, dtype=dtype or common
        )
        return Expr(self.builder, made)

    def compare(self, op: str, other: Operand) -> Expr:
        """Return one of eq, ne, lt, le, gt, ge as booleans."""
        return self.binary(op, other, dtype=torch.bool)

    def maximum(self, other: Operand) -> Expr:
        """Return the larger; NaN if either is."""
        return self.binary("max", other)

    def minimum(self, other: Operand) -> Expr:
        """Return the smaller; NaN if either is."""
        return self.binary("min", other)

    def where(self, yes: Operand, no: Operand) -> Expr:
        """Return `yes` where this boolean holds, else `no`; at least one must be an Expr."""
        if isinstance(yes, Expr):
            left, right = yes, yes.lift(no)
        elif isinstance(no, Expr):
            left, right = no.lift(yes), no
        else:
            raise TypeError("where: one of the two branches must be an Expr")
        common = torch.promote_types(left.dtype, right.dtype)
        made = self.builder.map(
            "where",
            self.to(torch.bool).value,
            left.to(common).value,
            right.to(common).value,
            dtype=common,
        )
        return Expr(self.builder, made)

    def to(self, dtype: torch.dtype) -> Expr:
        """Return this as another dtype."""
        return Expr(self.builder, self.builder.cast(self.value, dtype))

    def reduce(self, kind: ReduceKind, dims: Sequence[int], *, keepdim: bool = False) -> Expr:
        """Return a reduction; no dims means all."""
        if not self.shape:
            return self
        return Expr(self.builder, self.builder.reduce(kind, self.value, dims, keepdim=keepdim))

    def mean(self, dims: Sequence[int], *, keepdim: bool = False) -> Expr:
        """Return the arithmetic mean; no dims means all."""
        rank = len(self.shape)
        over = {dim % rank for dim in dims} if dims else set(range(rank))
        count = prod(self.shape[dim] for dim in over)
        return self.reduce("sum", dims, keepdim=keepdim) / float(count)

    def scan(self, kind: ScanKind, dim: int) -> Expr:
        """Return a running sum or product."""
        if not self.shape:
            return self
        return Expr(self.builder, self.builder.scan(kind, self.value, dim))

    def iota(self, dim: int) -> Expr:
        """Return the int64 index along a dimension of this shape."""
        return Expr(self.builder, self.builder.iota(self.shape, dim % len(self.shape)))

    def reshape(self, shape: Sequence[int]) -> Expr:
        """Return the same elements in the same order under another shape."""
        return Expr(self.builder, self.builder.reshape(self.value, tuple(shape)))

    def unsqueeze(self, dim: int) -> Expr:
        """Return this with a size-1 dimension more."""
        dim %= len(self.shape) + 1
        return self.reshape((*self.shape[:dim], 1, *self.shape[dim:]))

    def permute(self, dims: Sequence[int]) -> Expr:
        """Return this with its dimensions in another order."""
        return Expr(self.builder, self.builder.permute(self.value, dims))

    def expand(self, shape: Sequence[int]) -> Expr:
        """Return this repeated to a shape."""
        return Expr(self.builder, self.builder.expand(self.value, shape))


Operand = Expr | Scalar
