"""The ledger of slots: each is pending, then told or cancelled, exactly once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SlotState = Literal["pending", "told", "cancelled"]


@dataclass(slots=True, kw_only=True, eq=False)
class AskedExpansion:
    """What became of the slots of one expansion."""

    parent_node: int
    first_slot: int
    """Running number of its slot 0 among all slots of the search."""
    states: list[SlotState]
    """One for each slot."""


class Ledger:
    """All expansions of one search, by ordinal."""

    def __init__(self) -> None:
        self.expansions: list[AskedExpansion] = []
        self.num_pending = 0
        self.num_told = 0
        self._num_slots = 0

    def open(self, parent_node: int, *, num_slots: int) -> int:
        """Enter a new expansion with all its slots pending, and return its ordinal."""
        self.expansions.append(
            AskedExpansion(
                parent_node=parent_node, first_slot=self._num_slots, states=["pending"] * num_slots
            )
        )
        self._num_slots += num_slots
        self.num_pending += num_slots
        return len(self.expansions) - 1

    def expansion(self, ordinal: int) -> AskedExpansion:
        """Return one expansion.

        Raises:
            ValueError: it was never asked.
        """
        if not 0 <= ordinal < len(self.expansions):
            raise ValueError(
                f"expansion {ordinal} was never asked; this search has asked {len(self.expansions)}"
            )
        return self.expansions[ordinal]

    def require_pending(self, ordinal: int, *, index: int) -> AskedExpansion:
        """Return the expansion of a pending slot.

        Raises:
            ValueError: there is no such slot, or it was told or cancelled before.
        """
        asked = self.expansion(ordinal)
        if not 0 <= index < len(asked.states):
            raise ValueError(
                f"expansion {ordinal} has slots 0 to {len(asked.states) - 1}, not slot {index}"
            )
        if asked.states[index] != "pending":
            raise ValueError(
                f"slot {index} of expansion {ordinal} must be pending, "
                f"but it was {asked.states[index]} before"
            )
        return asked

    def settle(self, ordinal: int, *, index: int, state: Literal["told", "cancelled"]) -> None:
        """Mark a pending slot as told or cancelled.

        Raises:
            ValueError: there is no such slot, or it was told or cancelled before.
        """
        self.require_pending(ordinal, index=index).states[index] = state
        self.num_pending -= 1
        self.num_told += state == "told"

    def pending_slots(self, ordinal: int) -> list[int]:
        """Return the indices of the pending slots of an expansion.

        Raises:
            ValueError: it was never asked.
        """
        states = self.expansion(ordinal).states
        return [index for index, state in enumerate(states) if state == "pending"]
