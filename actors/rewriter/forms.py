"""The table of normal forms: which function writes a call in the one form that rules know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder

Form = Callable[[Builder, fx.Node], fx.Node | None]
"""Gives the node to read instead, or None where the call stays as it is."""

FORMS: dict[Any, Form] = {}
"""From an ATen overload to its form."""


def form(*targets: object) -> Callable[[Form], Form]:
    """Return a decorator that files the normal form of some calls."""

    def file(function: Form) -> Form:
        for target in targets:
            FORMS[target] = function
        return function

    return file
