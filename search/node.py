"""A node of the tree: one told candidate, or the virtual ROOT, with what is known below it.

Nodes are mutable and belong to one TreeSearch; everybody else gets ids and frozen NodeViews.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.expansion import Mode
from kopt.search.base import ROOT, NodeStatus, NodeView
from kopt.search.progress import UNKNOWN, Progress


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One node. The counts are kept by backup.py, the standing by standing.py."""

    node_id: int
    parent: Node | None = field(repr=False)
    candidate: str | None
    mode: Mode | None
    status: NodeStatus
    reward: float | None
    ordinal: int | None
    index: int | None
    depth: int
    strategy: str = ""
    """What its programmer meant to do, as told."""
    progress: Progress = UNKNOWN
    """How far it came."""
    reward_above: float | None = None
    """Reward of the nearest correct node above; None without one."""
    origin: Node | None = field(default=None, repr=False)
    """The child of ROOT above it, or itself: the head of its chain. None for ROOT."""

    children: list[Node] = field(default_factory=list, repr=False)
    """In order of ids, whatever the order of tells."""
    asked: int = 0
    """Slots ever asked here, cancelled ones included."""
    pending_here: int = 0
    """Slots asked here and not yet told or cancelled."""
    closed: bool = False
    """The programmer has nothing more for it."""

    visits: int = 0
    """Told candidates at or below it (N)."""
    value_sum: float = 0.0
    """Sum of their rewards, each rounded to the grid of backup.py."""
    in_flight: int = 0
    """Slots pending at or below it."""
    num_correct_below: int = 0
    """Correct candidates below it, itself not counted."""

    terminal: bool = False
    """A dead end (terminal.py)."""
    live: bool = False
    """Something may still be asked at or below it, now or later (standing.py)."""
    serves: bool = False
    """An ask that comes here now would find a node to expand (standing.py)."""
    num_live: int = 0
    """Children that are live."""
    num_serving: int = 0
    """Children that serve."""

    @property
    def mean(self) -> float:
        """Mean reward at and below it; 0 before the first visit, which only ROOT can be."""
        return self.value_sum / self.visits if self.visits else 0.0

    @property
    def visits_expected(self) -> int:
        """N' = visits + in-flight, what N will be once all pending answers are in (WU-UCT)."""
        return self.visits + self.in_flight

    @property
    def children_expected(self) -> int:
        """Children and slots pending here: the children it will have (k)."""
        return len(self.children) + self.pending_here

    @property
    def expansion_mode(self) -> Mode:
        """Mode of an expansion from here (KernelPro Alg. 1, lines 6-9)."""
        match self.status:
            case "root":
                return "initial"
            case "failed":
                return "debug"
            case "correct":
                return "optimize"

    def view(self) -> NodeView:
        """Return a frozen copy of what others may see."""
        return NodeView(
            node=self.node_id,
            parent=None if self.parent is None else self.parent.node_id,
            candidate=self.candidate,
            mode=self.mode,
            status=self.status,
            reward=self.reward,
            visits=self.visits,
            value_sum=self.value_sum,
            in_flight=self.in_flight,
            terminal=self.terminal,
            closed=self.closed,
            depth=self.depth,
            ordinal=self.ordinal,
            index=self.index,
            strategy=self.strategy,
            progress=self.progress,
        )


def virtual_root() -> Node:
    """Return a ROOT without children: the parent of fresh seeds, itself no candidate."""
    return Node(
        node_id=ROOT,
        parent=None,
        candidate=None,
        mode=None,
        status="root",
        reward=None,
        ordinal=None,
        index=None,
        depth=0,
    )
