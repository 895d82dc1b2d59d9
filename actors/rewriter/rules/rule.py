"""What a rule is, and the table of rules.

A rule looks at one call and offers a node to read instead: equal for all weights and inputs in
exact arithmetic. Weights are folded in the graph itself, at every call, so that weights loaded or
changed later are used. Whether an offer is taken is decided by cost, except for rules that can
only save work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Aten, Builder
from kopt.registry import Registry

Rewrite = Callable[[Builder, fx.Node], fx.Node | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rewrite."""

    name: str
    targets: frozenset[Any]
    """ATen overloads at which it may start."""
    rewrite: Rewrite
    """Builds the replacement before the node, or returns None where the rule does not apply."""
    summary: str
    """The algebra in a line."""
    always: bool = False
    """Taken wherever it applies: it can only save work."""


RULES: Registry[Rule] = Registry("rule", entry_point_group="kopt.rules")
"""Factories take no argument."""


def rule(*targets: Aten, always: bool = False) -> Callable[[Rewrite], Rewrite]:
    """Return a decorator that files a rewrite under its function's name.

    The first line of its docstring is the summary.
    """

    def file(rewrite: Rewrite) -> Rewrite:
        name = rewrite.__name__
        made = Rule(
            name=name,
            targets=frozenset(targets),
            rewrite=rewrite,
            summary=(rewrite.__doc__ or name).strip().splitlines()[0],
            always=always,
        )
        RULES.register(name)(lambda: made)
        return rewrite

    return file
