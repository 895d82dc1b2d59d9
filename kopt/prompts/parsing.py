"""Parsing a text that may be anything: a tree, or None, and never a warning or an exception."""

from __future__ import annotations

import ast
import warnings


def parsed(source: str) -> ast.Module | None:
    """Return the tree of a module text; None where Python's parser refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is its author's affair
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
