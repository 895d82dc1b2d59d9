"""Rewrites that hold for every weight and input; importing this package registers them."""

from __future__ import annotations

from kopt.actors.rewriter.rules import linear_reduce
from kopt.actors.rewriter.rules.rule import RULES, Rule

__all__ = ["RULES", "Rule", "linear_reduce"]
