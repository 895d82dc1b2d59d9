"""Reductions in two steps, where a row's own reduction lies below a reduction over all rows.

The mean of a row-wise loss reduces rows and columns at once, while the loss needs sums over the
columns alone. Reduced over the columns first, it stays in the kernel of the loss, and only one
number a row is written instead of all elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import Compute, Reduce, Scan, Value, postorder
from kopt.actors.rewriter.codegen.rebuild import rebuilt
from kopt.actors.rewriter.codegen.space import Clash, Space


def nested(builder: Builder, roots: Sequence[Value]) -> list[Value]:
    """Return the roots with such reductions cut in two."""
    made: dict[Value, Value] = {}
    for value in postorder(roots):
        made[value] = _cut(builder, value, made)
    return [made[root] for root in roots]


def _cut(builder: Builder, value: Value, made: dict[Value, Value]) -> Value:
    if isinstance(value, Reduce):
        arg = made[value.arg]
        inner = _inner_dims(arg, value.dims)
        if inner:
            partial = builder.reduce(value.kind, arg, inner, keepdim=True)
            return builder.reduce(value.kind, partial, value.dims)
    return rebuilt(builder, value, made)


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
