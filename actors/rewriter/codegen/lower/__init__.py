"""ATen to formulas: `lower` writes one node; importing this package fills the table."""

from __future__ import annotations

from kopt.actors.rewriter.codegen.lower import (
    activations,
    class_losses,
    losses,
    norms,
    pointwise,
    reductions,
    views,
    windows,
)
from kopt.actors.rewriter.codegen.lower.nodes import lower

__all__ = [
    "activations",
    "class_losses",
    "losses",
    "lower",
    "norms",
    "pointwise",
    "reductions",
    "views",
    "windows",
]
