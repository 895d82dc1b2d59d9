"""Rewrites that hold for every weight and input; importing this package registers them."""

from __future__ import annotations

from kopt.actors.rewriter.rules import (
    arithmetic,
    cancelled,
    clamp_chains,
    conv_pool,
    conv_reduce,
    fold_affine,
    linear_chain,
    linear_reduce,
    matmul_reduce,
    monotone,
    pick_early,
    pool_terms,
    reduce_terms,
    single_size,
)
from kopt.actors.rewriter.rules.rule import RULES, Rule

__all__ = [
    "RULES",
    "Rule",
    "arithmetic",
    "cancelled",
    "clamp_chains",
    "conv_pool",
    "conv_reduce",
    "fold_affine",
    "linear_chain",
    "linear_reduce",
    "matmul_reduce",
    "monotone",
    "pick_early",
    "pool_terms",
    "reduce_terms",
    "single_size",
]
