"""The Search protocol: one tree over one problem, driven by ask and tell.

A search decides which node to expand next, and nothing else: it owns no clock, no random
numbers, no thread and no actor. Whoever drives it asks for expansions, has candidates written
and judged, and tells the verdicts back, in any order.

Invariants that every search keeps (kopt.testing.search_suite checks them):

* Each slot of each expansion is told or cancelled exactly once; until then it is pending.
* told + pending never exceeds the budget, and a search that neither runs out of open nodes nor
  gives up tells exactly its budget: cancelled slots are given back.
* Node ids are 1 + the running number of the slot (slots are numbered as they are asked; a
  cancelled slot leaves a gap), so the tree does not depend on the order in which answers arrive.
* Equal calls give equal results: a search is a function of its config, reward rule, seed, and
  the calls made.
* `ask(k)` is `ask(1)` k times over, and an ask that gives nothing changes nothing: a journal of
  expansions, tells and cancels in their order rebuilds the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from kopt.expansion import Expansion, Mode
from kopt.search.progress import UNKNOWN, Progress
from kopt.verdict import Verdict

ROOT = 0
"""Node id of the virtual ROOT, which holds no candidate."""

NodeStatus = Literal["root", "correct", "failed"]
FinishReason = Literal["budget", "exhausted", "all_terminal", "idle"]


class Told(NamedTuple):
    """What telling a verdict made."""

    node: int
    """Id of the new node."""
    reward: float
    """Reward of the verdict under the search's rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as it stood when asked for; it does not change afterwards."""

    node: int
    """Id; 0 is ROOT."""
    parent: int | None
    """Id of the parent; None for ROOT."""
    candidate: str | None
    """Candidate id; None for ROOT."""
    mode: Mode | None
    """Mode of the expansion that made it; None for ROOT."""
    status: NodeStatus
    reward: float | None
    """Its own reward; None for ROOT."""
    visits: int
    """Told candidates at or below it."""
    value_sum: float
    """Sum of their rewards."""
    in_flight: int
    """Slots pending at or below it: asked here or at a descendant, not yet told or cancelled."""
    terminal: bool
    """A dead end: never expanded or walked through again."""
    closed: bool
    """Its programmer has nothing more for it: never expanded again."""
    depth: int
    """Edges to ROOT."""
    ordinal: int | None
    """The expansion that made it; None for ROOT."""
    index: int | None
    """Its slot in that expansion; None for ROOT."""
    strategy: str = ""
    """What its programmer meant to do; empty for ROOT and where it was not said."""
    progress: Progress = UNKNOWN
    """How far it came; nothing is known of ROOT."""


class Search(Protocol):
    """One tree. Not thread-safe: one driver owns it. All it hands out is frozen."""

    def ask(self, k: int = 1) -> list[Expansion]:
        """Return up to k expansions, to be told or cancelled.

        Fewer, or none, where the search is finished, the rest of its budget is pending, or the
        policy would rather see pending answers first; after a tell or a cancel, ask again.

        Raises:
            ValueError: k < 1.
        """
        ...

    def tell(
        self, ordinal: int, index: int, *, candidate: str, verdict: Verdict, strategy: str = ""
    ) -> Told:
        """Add the candidate of one slot as a node, and back its reward up to ROOT.

        Slots and expansions may be told in any order. Nothing has changed where it raises.

        Args:
            ordinal: of the expansion.
            index: of the slot, 0 <= index < num_candidates.
            candidate: candidate id.
            verdict: what became of it.
            strategy: what its programmer meant to do, in its own words; may be empty.

        Raises:
            ValueError: unknown ordinal or index, the slot was told or cancelled before, or the
                reward is not finite.
        """
        ...

    def cancel(self, ordinal: int, *, exhausted: bool = False) -> int:
        """Give up all pending slots of an expansion, as if they had never been asked.

        The slots go back to the budget and out of every in-flight count; `first_child` alone
        does not go back, so that the node's next expansion is another idea and another seed.

        Args:
            ordinal: of the expansion.
            exhausted: close the node as well: it is never expanded again. With it, an expansion
                without pending slots may be cancelled too, which just closes the node.

        Returns:
            How many slots were given up.

        Raises:
            ValueError: unknown ordinal, or nothing is pending and `exhausted` is not set.
        """
        ...

    def pending(self) -> int:
        """Return how many slots are asked and neither told nor cancelled."""
        ...

    def told(self) -> int:
        """Return how many candidates were told."""
        ...

    def finished(self) -> FinishReason | None:
        """Return why the search is over, or None while there is something to ask or pending.

        `budget`: all of it was told. `exhausted`: no node may be expanded, since programmers
        have nothing more to write. `all_terminal`: the same, and every branch is a dead end.
        `idle`: the policy gave up, since its latest rounds brought nothing better.
        """
        ...

    def best(self) -> int | None:
        """Return the node of the correct candidate with the highest reward; None without one.

        The lowest id wins a tie.
        """
        ...

    def node(self, node: int) -> NodeView:
        """Return one node.

        Raises:
            ValueError: there is no such node.
        """
        ...

    def nodes(self) -> list[NodeView]:
        """Return every node in order of ids, ROOT first."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain JSON values."""
        ...

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Take over a snapshot, pending slots included: the future is that of the original.

        The search must be new, of the same policy and seed. Its budget may differ from the
        original's: that is how a finished search is extended.

        Raises:
            ValueError: the search has asked before, or the snapshot is of another policy, seed
                or schema.
        """
        ...
