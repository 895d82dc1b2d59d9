"""Two maps for which there is one function that costs less, or is more exact.

* 1 + erf(x): the sum forgets what erf does to be exact for small x (GELU, the normal
  distribution).
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.ir import Const, Map, Value, postorder
from kopt.actors.rewriter.codegen.rebuild import rebuilt


def joined_maps(builder: Builder, roots: Sequence[Value]) -> list[Value]:
    """Return the roots with such pairs made one; for back ends that have the joint functions."""
    made: dict[Value, Value] = {}
    for value in postorder(roots):
        same = rebuilt(builder, value, made)
        erf = _erf_plus_one(same)
        if erf is None:
            made[value] = same
        else:
            made[value] = builder.map("one_plus_erf", erf.args[0], dtype=erf.dtype)
    return [made[root] for root in roots]


def _erf_plus_one(value: Value) -> Map | None:
    """Return the erf if the value is 1 + erf(x) of its shape and dtype, else None."""
    if not isinstance(value, Map) or value.op != "add":
        return None
    for one, other in (value.args, value.args[::-1]):
        is_one = isinstance(one, Const) and one.number == 1
        if is_one and isinstance(other, Map) and other.op == "erf":
            same = other.shape == value.shape and other.dtype == value.dtype
            return other if same else None
    return None
