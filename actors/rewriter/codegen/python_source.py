"""Python text common to both back ends: names of tensors, views of what was stored."""

from __future__ import annotations

from collections.abc import Sequence

from kopt.actors.rewriter.codegen.ir import Expand, Permute, Reshape, Value
from kopt.actors.rewriter.codegen.stages import Stage


def tensor_names(stages: Sequence[Stage]) -> dict[Value, str]:
    """Return a name for each tensor that the stages store, in the order of storing."""
    stored = [value for stage in stages for value in stage.outputs]
    return {value: f"out{number}" for number, value in enumerate(stored)}


def returned(root: Value, stored: dict[Value, str]) -> str:
    """Return the expression of a root: the stored tensor, or torch's view of it."""
    if root in stored:
        return stored[root]
    if isinstance(root, Reshape):
        return f"{returned(root.arg, stored)}.reshape({root.shape})"
    if isinstance(root, Permute):
        return f"{returned(root.arg, stored)}.permute({root.dims})"
    if isinstance(root, Expand):
        return f"{returned(root.arg, stored)}.expand({root.shape})"
    raise AssertionError("a root that no stage stores")
