"""History: how the version that is expanded came about, and what was tried from it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kopt.memory.tried import Tried

MAX_LINEAGE = 8
"""Ancestors that a prompt tells, the nearest ones."""
MAX_SIBLINGS = 8
"""Versions from the same place that it tells, the latest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is told of the way to here; empty by default."""

    lineage: tuple[Tried, ...] = ()
    """The version's ancestors, the eldest first; the version itself is told elsewhere."""
    older: int = 0
    """Ancestors before these."""
    siblings: tuple[Tried, ...] = ()
    """What was made from the same place, in the order told."""
    earlier: int = 0
    """Siblings before these."""


def history_of(
    tried: Sequence[Tried], *, by_candidate: Mapping[str, Tried], parent: str | None
) -> History:
    """Return the history of a place.

    Args:
        tried: the siblings, in the order told.
        by_candidate: the first time that each candidate was tried.
        parent: the version that is expanded; None for ROOT.
    """
    lineage: list[Tried] = []
    version = None if parent is None else by_candidate.get(parent)
    seen = {parent}
    while version is not None and version.parent is not None and version.parent not in seen:
        seen.add(version.parent)
        version = by_candidate.get(version.parent)
        if version is not None:
            lineage.insert(0, version)
    return History(
        lineage=tuple(lineage[-MAX_LINEAGE:]),
        older=max(0, len(lineage) - MAX_LINEAGE),
        siblings=tuple(tried[-MAX_SIBLINGS:]),
        earlier=max(0, len(tried) - MAX_SIBLINGS),
    )
