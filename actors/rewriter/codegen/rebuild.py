"""The same value made of other operands: what every rewriting of values is built from."""

from __future__ import annotations

from collections.abc import Mapping

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import (
    Const,
    Expand,
    Iota,
    Load,
    Map,
    Permute,
    Reduce,
    Reshape,
    Value,
)


def rebuilt(b: Builder, value: Value, made: Mapping[Value, Value]) -> Value:
    """Return a value with its operands replaced; the value itself if none of them changed.

    Args:
        b: makes the new value.
        value: any value.
        made: what has become of each of its operands.
    """
    if isinstance(value, Load | Const | Iota):
        return value
    if isinstance(value, Map):
        args = [made[arg] for arg in value.args]
        return value if args == list(value.args) else b.map(value.op, *args, dtype=value.dtype)
    arg = made[value.arg]
    if arg is value.arg:
        return value
    if isinstance(value, Reduce):
        return b.reduce(value.kind, arg, value.dims)
    if isinstance(value, Reshape):
        return b.reshape(arg, value.shape)
    if isinstance(value, Permute):
        return b.permute(arg, value.dims)
    if isinstance(value, Expand):
        return b.expand(arg, value.shape)
    return b.scan(value.kind, arg, value.dim, reverse=value.reverse)
