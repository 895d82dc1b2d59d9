"""Rounds: the plans of one iteration of a beam, dealt to the members of the beam.

A plan is a slot asked at a member (ROOT or a correct node); a repair is none. Cancelled slots are
dealt again, so a round has told or pending plans of exactly its number.
"""

from __future__ import annotations

from collections.abc import Sequence

from kopt.search.ledger import Ledger
from kopt.search.node import Node


class Round:
    """One round under way."""

    def __init__(
        self, members: Sequence[Node], *, num_plans: int, first_ordinal: int, best: float | None
    ) -> None:
        """Begin a round.

        Args:
            members: where it starts from, in the order in which they are dealt plans.
            num_plans: plans in all (N), >= 1.
            first_ordinal: expansions from this one on belong to it.
            best: the best reward so far; None without a correct candidate.
        """
        self.members = tuple(members)
        self.first_ordinal = first_ordinal
        self.best_before = best
        self.passed: list[Node] = []
        """Correct candidates of this round, repairs included."""
        self.plans: list[Node] = []
        """Told plans of this round, correct or not, in order of ids once all are told."""
        self._num_plans = num_plans
        self._ordinals: dict[int, list[int]] = {}
        self._dealt: dict[int, int] = {}
        self._num_dealt = 0

    @property
    def num_missing(self) -> int:
        """Plans not asked yet, or cancelled."""
        return self._num_plans - self._num_dealt

    def opened(self, ordinal: int, *, parent: Node, ledger: Ledger) -> None:
        """Hear that plans were asked at a node."""
        self._ordinals.setdefault(parent.node_id, []).append(ordinal)
        self.recount(parent, ledger=ledger)

    def recount(self, parent: Node, *, ledger: Ledger) -> None:
        """Hear that slots asked at a node may have been cancelled."""
        ordinals = self._ordinals.get(parent.node_id)
        if ordinals is None:
            return
        num_slots = sum(
            len(states) - states.count("cancelled")
            for states in (ledger.expansion(ordinal).states for ordinal in ordinals)
        )
        self._num_dealt += num_slots - self._dealt.get(parent.node_id, 0)
        self._dealt[parent.node_id] = num_slots

    def next_deal(self) -> tuple[Node, int] | None:
        """Return the open member whose turn it is and its plans, or None without an open member.

        Plans are dealt one by one to the member that has fewest, the earlier of equals; all that
        the first member is dealt so make its expansion.
        """
        members = [member for member in self.members if not member.closed]
        if not members:
            return None
        dealt = [self._dealt.get(member.node_id, 0) for member in members]
        first = dealt.index(min(dealt))
        missing, num_plans = self.num_missing, 0
        level = dealt[first]
        while missing > 0:  # one turn of every member that has so few
            at_level = [place for place, number in enumerate(dealt) if number == level]
            for place in at_level[:missing]:
                dealt[place] += 1
                num_plans += place == first
            missing -= len(at_level)
            level += 1
        return members[first], num_plans
