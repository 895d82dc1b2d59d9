"""Reductions in two steps, where a row's own reduction lies below a reduction over all rows.

The mean of a row-wise loss reduces rows and columns at once, while the loss needs sums over the
columns alone. Reduced over the columns first, it stays in the kernel of the loss, and only one
number a row is written instead of all elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.rewriter.codegen.ir import (
    Builder,
    Compute,
    Const,
    Expand,
    Iota,
    Load,
    Map,
    Permute,
    Reduce,
    Reshape,
    Scan,
    Value,
    postorder,
)
from kopt.actors.rewriter.codegen.space import Clash, Space


def nested(builder: Builder, roots: Sequence[Value]) -> list[Value]:
    """Return the roots with such reductions cut in two."""
    made: dict[Value, Value] = {}
    for value in postorder(roots):
        made[value] = _rebuilt(builder, value, made)
    return [made[root] for root in roots]


def _rebuilt(b: Builder, value: Value, made: dict[Value, Value]) -> Value:
    if isinstance(value, Load | Const | Iota):
        return value
    if isinstance(value, Map):
        args = [made[arg] for arg in value.args]
        return value if args == list(value.args) else b.map(value.op, *args, dtype=value.dtype)
    arg = made[value.arg]
    if isinstance(value, Reduce):
        inner = _inner_dims(arg, value.dims)
        if inner:
            partial = b.reduce(value.kind, arg, inner, keepdim=True)
            return b.reduce(value.kind, partial, value.dims)
        return value if arg is value.arg else b.reduce(value.kind, arg, value.dims)
    if arg is value.arg:
        return value
    if isinstance(value, Scan):
        return b.scan(value.kind, arg, value.dim, reverse=value.reverse)
    if isinstance(value, Reshape):
        return b.reshape(arg, value.shape)
    if isinstance(value, Permute):
        return b.permute(arg, value.dims)
    if isinstance(value, Expand):
        return b.expand(arg, value.shape)
    raise AssertionError("a value of unknown kind")


def _inner_dims(arg: Value, dims: Sequence[int]) -> tuple[int, ...]:
    """Return the dims, some but not all, along which `arg` is made of reductions already."""
    if len(dims) < 2:
        return ()
    values = list(postorder([arg]))
    below = [v for v in values if isinstance(v, Reduce | Scan)]
    if not below:
        return ()
    # A row loss that was itself summed over rows before is another kernel's; look at the nearest.
    given = frozenset(v for v in values if isinstance(v, Compute) and not v.shape)
    try:
        space = Space(values, given=given)
        columns = {frozenset(space.reduced(v)) for v in below if v not in given}
    except Clash:
        return ()
    if len(columns) != 1:
        return ()
    wanted = next(iter(columns))
    found = []
    for dim in dims:
        atoms = frozenset(space.along(arg, dim))
        if atoms and atoms <= wanted:
            found.append(dim)
        elif atoms & wanted:
            return ()
    covered = {atom for dim in found for atom in space.along(arg, dim)}
    return tuple(found) if covered == wanted and len(found) < len(dims) else ()
