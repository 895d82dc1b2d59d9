"""An expansion: the unit of search work, from a node of the tree to N new candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Mode = Literal["initial", "debug", "optimize"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """What a search asks for. Each of its N slots is told or cancelled exactly once."""

    ordinal: int
    """Counts the search's expansions from 0, in the order asked; its identity in the search."""
    parent_node: int
    """Node to expand; 0 is the virtual ROOT."""
    parent: str | None
    """Candidate id of that node; None for ROOT."""
    mode: Mode
    """`initial` from ROOT, `debug` from a failed node, `optimize` from a correct one."""
    num_candidates: int
    """N >= 1: slots 0 … N-1."""
    first_child: int
    """How many slots were asked at this node before: slot i is the node's idea first_child + i."""
    seed: int
    """Derived from (run seed, node, first_child), never from draw order; for sampling."""


def first_expansion(
    *, num_candidates: int = 1, ordinal: int = 0, first_child: int = 0, seed: int = 0
) -> Expansion:
    """Return what ROOT is asked for: versions from the ground up, without a parent.

    Args:
        num_candidates: wanted.
        ordinal: of the search's expansions.
        first_child: idea of ROOT that comes first.
        seed: for sampling.
    """
    return Expansion(
        ordinal=ordinal,
        parent_node=0,
        parent=None,
        mode="initial",
        num_candidates=num_candidates,
        first_child=first_child,
        seed=seed,
    )
