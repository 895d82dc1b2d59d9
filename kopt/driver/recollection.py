"""What one search has tried and learned, in the order of its journal.

Invariant: an expansion's prompt is told what stood in the journal before the expansion was asked,
and nothing later. So a resumed search, whose order is the journal's, recalls the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kopt.data.fold import ProfileState
from kopt.data.memory_json import entries_from_json
from kopt.evaluation import Evaluation
from kopt.events import CandidateMade, MemoryUpdated
from kopt.expansion import Expansion
from kopt.memory.entry import MemoryEntry
from kopt.memory.experience import ExperienceRule, queue_after
from kopt.memory.history import History, history_of
from kopt.memory.tried import Tried, tried_of


class Known(NamedTuple):
    """How far a search had come when one of its expansions was asked."""

    told: int
    updates: int


class Recollection:
    """Held by a search's task; of one event loop."""

    def __init__(self) -> None:
        """Begin a search."""
        self.updates: list[MemoryUpdated] = []
        """How the memory grew."""
        self._entries: list[MemoryEntry] = []
        self._ends: list[int] = [0]
        self._told: list[CandidateMade] = []
        self._tried: list[Tried] = []
        self._first: dict[str, Tried] = {}
        self._made_from: dict[str | None, list[int]] = {}
        self._queues: list[tuple[Tried, ...]] = [()]
        self._parents: dict[int, str | None] = {}
        self._known: dict[int, Known] = {}
        self._repairs: set[int] = set()
        self._learned_from: set[int | None] = set()

    def began_with(self, origin: str, *, updates: int | None = None) -> MemoryUpdated | None:
        """Return what the search was told from one origin before its first expansion.

        Args:
            origin: `tracker` or `retrieval`.
            updates: of the memory that count, the first ones; None for all.
        """
        for update in self.updates[:updates]:
            if update.expansion is None and update.origin == origin:
                return update
        return None

    @property
    def has_asked(self) -> bool:
        """Whether an expansion was asked."""
        return bool(self._known)

    def asked(self, expansion: Expansion, *, updates: int | None = None) -> None:
        """Note that an expansion was asked now.

        Args:
            expansion: that was asked.
            updates: of the memory that stood in the journal by then; None for all of them.
        """
        self._parents[expansion.ordinal] = expansion.parent
        if expansion.mode == "debug":
            self._repairs.add(expansion.ordinal)
        known = len(self.updates) if updates is None else updates
        self._known[expansion.ordinal] = Known(told=len(self._told), updates=known)

    def told(self, made: CandidateMade) -> None:
        """Note that the tree hears of a candidate now."""
        self._told.append(made)

    def learned(self, update: MemoryUpdated) -> None:
        """Note that the memory grew.

        Raises:
            StoreError: its entries are none.
        """
        of_search = update.expansion is not None
        self._entries += entries_from_json(update.entries) if of_search else ()
        self._ends.append(len(self._entries))
        self.updates.append(update)
        self._learned_from.add(update.expansion)

    def has_learned_from(self, ordinal: int | None) -> bool:
        """Whether the memory has an update of an expansion; of the search's beginning for None."""
        return ordinal in self._learned_from

    def strategies(self, ordinal: int) -> list[str]:
        """Return the strategies of what had been told when an expansion was asked, in order.

        A repair carries out the strategy that it repairs, and has none of its own.
        """
        told = self._told[: self._known[ordinal].told]
        return [
            made.strategy for made in told if made.strategy and made.expansion not in self._repairs
        ]

    def known(self, expansion: Expansion) -> Known:
        """Return how far the search had come when an expansion was asked."""
        return self._known[expansion.ordinal]

    def entries(self, updates: int | None = None) -> tuple[MemoryEntry, ...]:
        """Return the search memory after so many updates; None for all."""
        return tuple(self._entries[: self._ends[-1 if updates is None else updates]])

    def tried(
        self, *, evaluations: Mapping[str, Evaluation], profiles: Mapping[str, ProfileState]
    ) -> Sequence[Tried]:
        """Return everything that was told, in order; the list grows as more is told.

        Args:
            evaluations: of the search, by candidate.
            profiles: of the search, by candidate.
        """
        for made in self._told[len(self._tried) :]:
            parent = self._parents.get(made.expansion, made.parent)
            item = tried_of(
                evaluations[made.candidate],
                parent=parent,
                expansion=made.expansion,
                strategy=made.strategy,
                parent_evaluation=None if parent is None else evaluations.get(parent),
                signal=_signal(None if parent is None else profiles.get(parent)),
            )
            self._first.setdefault(item.candidate, item)
            self._made_from.setdefault(parent, []).append(len(self._tried))
            self._tried.append(item)
        return self._tried

    def history(self, parent: str | None, *, told: int) -> History:
        """Return the history of a place; of what `tried` returned last.

        Args:
            parent: the version that is expanded; None for ROOT.
            told: candidates that count, the first ones.
        """
        places = self._made_from.get(parent, [])
        siblings = [self._tried[place] for place in places[: bisect_left(places, told)]]
        return history_of(siblings, by_candidate=self._first, parent=parent)

    def experience(self, rule: ExperienceRule, *, told: int) -> tuple[Tried, ...]:
        """Return the experience queue; of what `tried` returned last.

        Args:
            rule: the same in all of a search.
            told: candidates that count, the first ones.
        """
        for item in self._tried[len(self._queues) - 1 :]:
            self._queues.append(queue_after(self._queues[-1], item, rule=rule))
        return self._queues[told]


def _signal(profile: ProfileState | None) -> str:
    """Return the title of what the tools found first."""
    findings = profile.findings.findings if profile is not None and profile.findings else []
    return str(findings[0].get("title", "")) if findings else ""
