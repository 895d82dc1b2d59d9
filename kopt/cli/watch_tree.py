"""The tree of one watched search: its nodes as the journal tells them, and what of them is shown.

Pure. A node that the driver has told its tree of is shown with its verdict; what is still being
written or judged is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field

from kopt.data.record import Record
from kopt.errors import ConfigError
from kopt.evaluation import EvalJson, rank
from kopt.events import (
    CandidateMade,
    ExpansionAsked,
    ExpansionCancelled,
    FindingsMade,
    Told,
    VerdictReached,
)


@dataclass(slots=True, kw_only=True)
class Node:
    """A candidate that the tree knows."""

    node: int
    parent: int
    made: CandidateMade
    evaluation: EvalJson
    reward: float
    children: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A node that is shown."""

    node: Node
    depth: int
    """1 for a child of ROOT."""
    hidden: int
    """Nodes of its branches that are not shown."""


class WatchedTree:
    """One search's tree; `observe` takes the run's records in order, and heeds its own."""

    def __init__(self, search: str) -> None:
        """Begin with nothing observed.

        Args:
            search: name, `problem/arm/seed`.
        """
        self.search = search
        self.nodes: dict[int, Node] = {}
        self.first: list[int] = []
        """Children of ROOT."""
        self.findings: dict[str, FindingsMade] = {}
        """By candidate id."""
        self._parents: dict[int, int] = {}
        """Expansion to the node that it expands."""
        self._left: dict[int, int] = {}
        """Expansion to its slots neither told nor cancelled; only those that have some."""
        self._made: dict[tuple[int, int], CandidateMade] = {}
        self._evaluations: dict[tuple[int, int], EvalJson] = {}

    def observe(self, record: Record) -> None:
        """Take one more record in."""
        if record.search != self.search:
            return
        body = record.body
        match body:
            case ExpansionAsked():
                self._parents[body.expansion] = body.parent_node
                self._left[body.expansion] = body.n
            case CandidateMade():
                self._made[body.expansion, body.index] = body
            case VerdictReached():
                self._evaluations[body.expansion, body.index] = body.eval
            case Told():
                self._told(body)
            case FindingsMade():
                self.findings[body.candidate] = body
            case ExpansionCancelled():
                self._forget(body.expansion)
            case _:
                pass

    @property
    def pending(self) -> int:
        """Slots that are being written or judged."""
        return sum(self._left.values())

    def best(self) -> Node | None:
        """Return the surest and fastest node, as results and `best/` rank; the first of equals."""
        correct = [node for node in self.nodes.values() if node.evaluation["kind"] == "correct"]
        return max(correct, key=lambda node: (rank(node.evaluation), -node.node), default=None)

    def find(self, name: str) -> Node:
        """Return a node by its number, or by the first digits of its candidate's id.

        Raises:
            ConfigError: there is none, or several are meant.
        """
        if name.isdigit() and int(name) in self.nodes:
            return self.nodes[int(name)]
        found = [n for n in self.nodes.values() if len(name) >= 4 and _is_named(n, name)]
        if len(found) == 1:
            return found[0]
        last = max(self.nodes, default=0)
        known = f"nodes 1 to {last}" if last else "no node yet"
        if found:
            raise ConfigError(f"--node {name}: {len(found)} nodes begin so; give more digits")
        raise ConfigError(f"--node {name}: {self.search} has {known}")

    def lines(self, *, depth: int, root: Node | None = None) -> list[Line]:
        """Return the nodes that are shown, parents before children, in order of their numbers.

        Shown are nodes down to `depth` below ROOT, or below `root`, and the way to the best one.

        Args:
            depth: >= 1.
            root: shown with what is below it, alone; None shows all.
        """
        way = set()
        at = self.best()
        while at is not None:
            way.add(at.node)
            at = self.nodes.get(at.parent)
        first = self.first if root is None else [root.node]
        top = 1 if root is None else 0

        def below(node: Node, level: int) -> list[int]:
            return [child for child in node.children if level < depth or child in way]

        return list(self._walk(first, top, below))

    def opened(self, nodes: Set[int]) -> list[Line]:
        """Return the children of ROOT, and the children of those nodes that can be seen."""
        return list(
            self._walk(self.first, 1, lambda node, _: node.children if node.node in nodes else [])
        )

    def _walk(
        self, numbers: list[int], level: int, shown: Callable[[Node, int], list[int]]
    ) -> Iterator[Line]:
        """Yield nodes and, of each, the children that are shown of a node at its level."""
        stack = [(number, level) for number in reversed(numbers)]
        while stack:
            number, at = stack.pop()
            node = self.nodes[number]
            below = shown(node, at)
            hidden = self._count(node) - sum(1 + self._count(self.nodes[c]) for c in below)
            yield Line(node=node, depth=at, hidden=hidden)
            stack.extend((child, at + 1) for child in reversed(below))

    def _count(self, node: Node) -> int:
        """How many nodes are below one."""
        count, stack = 0, list(node.children)
        while stack:
            count += 1
            stack.extend(self.nodes[stack.pop()].children)
        return count

    def _told(self, body: Told) -> None:
        slot = body.expansion, body.index
        parent = self._parents[body.expansion]
        node = Node(
            node=body.node,
            parent=parent,
            made=self._made.pop(slot),
            evaluation=self._evaluations.pop(slot),
            reward=body.reward,
        )
        self.nodes[body.node] = node
        (self.nodes[parent].children if parent in self.nodes else self.first).append(body.node)
        self._left[body.expansion] -= 1
        if not self._left[body.expansion]:
            del self._left[body.expansion]

    def _forget(self, expansion: int) -> None:
        self._left.pop(expansion, None)
        for slots in (self._made, self._evaluations):
            for slot in [slot for slot in slots if slot[0] == expansion]:
                del slots[slot]


def _is_named(node: Node, name: str) -> bool:
    return node.made.candidate.startswith(name)
