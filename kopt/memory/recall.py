"""What a prompt is told from memory: each part empty where it is switched off."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.memory.entry import MemoryEntry
from kopt.memory.precedent import Precedent
from kopt.memory.tracker import StrategyRecord
from kopt.memory.tried import Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Everything that an author is reminded of; the prompt bounds what it shows."""

    entries: tuple[MemoryEntry, ...] = ()
    """The search memory, in the order learned."""
    experience: tuple[Tried, ...] = ()
    """The experience queue, the oldest first."""
    strategies: tuple[StrategyRecord, ...] = ()
    """What the tracker said when the search began."""
    precedent: Precedent | None = None
    """How the most similar past problem was made fast; None where there is none."""
    guidelines: bool = False
    """Whether the shipped guidelines are told."""
