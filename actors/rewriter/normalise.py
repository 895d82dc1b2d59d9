"""One form for each thing: what rules may rely on after `normalise`.

* No-ops are gone: dropout that does nothing, detach, alias, clone, contiguous of what is
  contiguous, casts to the same dtype, metadata checks, unused calls.
* Every change of shape without change of order (view, flatten, squeeze, unsqueeze, …) is
  `aten.reshape.default(x, sizes)`; every transposition is `aten.permute.default(x, dims)`.
* A product with a 2-D right operand is `aten.linear.default(x, w, b)`, w of shape (out, in).
* `sum.dim_IntList`, `mean.dim` have explicit dimensions; the values of `max.dim` alone are `amax`.
* Arithmetic with numbers is `add/sub/mul/div.Tensor`, with no `alpha`.
"""

from __future__ import annotations

from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter import einsum_forms, shape_forms, value_forms
from kopt.actors.rewriter.forms import FORMS
from kopt.actors.rewriter.graph import Builder, calls, replace, tidy

__all__ = ["einsum_forms", "normalise", "shape_forms", "value_forms"]


def normalise(module: fx.GraphModule, mode: FakeTensorMode) -> None:
    """Bring a graph to normal form, in place; repeated until nothing changes."""
    changed = True
    while changed:
        changed = False
        for node in calls(module):
            make = FORMS.get(node.target)
            if make is None:
                continue
            new = make(Builder(module, node, mode), node)
            if new is not None and new is not node:
                replace(node, new)
                module.graph.erase_node(node)
                changed = True
        tidy(module)
