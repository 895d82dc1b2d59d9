"""The check of a candidate against mined rules, where candidates are built."""

from __future__ import annotations

from pathlib import Path

from kopt.actors.cutlass.mined import is_as_mined, known_trees
from kopt.cutlass.validator import cutlass_faults, uses_cutlass


def cutlass_refusal(source: str, *, cache_dir: Path) -> str | None:
    """Return why a candidate that uses CUTLASS cannot compile; None where it may.

    Quick for all others. Only trees that were mined on this node are known; a tree that has changed
    since says nothing.

    Args:
        source: the candidate's Python text.
        cache_dir: kopt's cache on this node.
    """
    if not uses_cutlass(source):
        return None
    for tree in known_trees(cache_dir):
        faults = cutlass_faults(source, trees=(tree,))
        if faults and is_as_mined(tree):
            return "\n".join(faults)
    return None
