"""Rewrites that hold for every weight and input; importing this package registers them."""

from __future__ import annotations

from kopt.actors.rewriter.rules import (
    conv_pool,
    conv_reduce,
    linear_reduce,
    reduce_terms,
    single_size,
)
from kopt.actors.rewriter.rules.rule import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "conv_pool",
    "conv_reduce",
    "linear_reduce",
    "reduce_terms",
    "single_size",
]
