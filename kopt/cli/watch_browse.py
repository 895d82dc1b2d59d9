"""A run walked through by keys: its searches, the tree of one, a node of it. Reads no key."""

from __future__ import annotations

from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.segment import Segments
from rich.text import Text

from kopt.cli.watch_tree import Line, Node, WatchedTree
from kopt.cli.watch_tree_view import HEAD_LINES, node_frame, tree_head, tree_line
from kopt.cli.watch_view import frame, searches_table
from kopt.cli.watched_run import WatchedRun

Screen = Literal["run", "searches", "tree", "node"]

KEYS: dict[Screen, str] = {
    "run": "enter its searches | q leave",
    "searches": "up down choose | enter its tree | back | q leave",
    "tree": "up down choose | right left open shut | b best | enter node | back | q leave",
    "node": "up down scroll | back | q leave",
}
"""What the last line says of each screen."""
STEPS = {"up": -1, "k": -1, "down": 1, "j": 1}
PAGES = {"page up": -1, "page down": 1}
CHOSEN = "reverse"
FOOT_LINES = 2


class Browse:
    """Where the user is in a run, and what of it is on the screen."""

    def __init__(self, run: WatchedRun, *, depth: int, node: str | None = None) -> None:
        """Begin with the run, or with the tree that it keeps.

        Args:
            run: looked at by the caller, again and again.
            depth: levels of a tree that are open at first, >= 1.
            node: of that tree, shown first: its number, or the first digits of its candidate's id.

        Raises:
            ConfigError: the tree has no such node.
        """
        self.screen: Screen = "run"
        self._run = run
        self._depth = depth
        self._search = 0
        """Place of the chosen one among the run's searches."""
        self._node = 0
        """Number of the chosen one; 0 before any."""
        self._opened: set[int] = set()
        """Nodes whose children are shown."""
        self._first = 0
        """The screen's first line."""
        self._room = 1
        """Lines of the screen."""
        if run.tree is not None:
            self._enter_tree(run.tree)
            if node is not None:
                self._node = run.tree.find(node).node
                self._show("node")

    def press(self, key: str) -> bool:
        """Take a key in; False where the user leaves. One that means nothing here is ignored."""
        if key == "q":
            return False
        match self.screen:
            case "run":
                if key in ("enter", "right"):
                    self._show("searches")
                else:
                    self._scroll(key)
            case "searches":
                self._press_in_searches(key)
            case "tree":
                if self._run.tree is not None:
                    self._press_in_tree(key, self._run.tree)
            case "node":
                if key in ("back", "left"):
                    self._show("tree")
                else:
                    self._scroll(key)
        return True

    def draw(self, console: Console) -> RenderableType:
        """Return the screen, no higher than the console."""
        self._room = max(1, console.height - FOOT_LINES)
        body, chosen = self._body()
        lines = console.render_lines(body, console.options, pad=False, new_lines=True)
        if chosen is not None:
            self._first = min(self._first, chosen)
            self._first = max(self._first, chosen - self._room + 1)
        self._first = max(0, min(self._first, len(lines) - self._room))
        shown = lines[self._first : self._first + self._room]
        more = len(lines) - self._first - len(shown)
        foot = KEYS[self.screen] + (f" | +{more}" if more else "")
        return Group(
            Segments([segment for line in shown for segment in line]),
            Text(foot, style="dim", overflow="ellipsis", no_wrap=True),
        )

    def _body(self) -> tuple[RenderableType, int | None]:
        """What the screen is a part of, and the line of it that is chosen."""
        tree = self._run.tree
        if self.screen == "searches":
            rows = searches_table(self._run.watched, chosen=self._search, style=CHOSEN)
            return rows, self._search + 1
        if tree is None or self.screen == "run":
            return frame(self._run.watched, self._run.moment), None
        node = tree.nodes.get(self._node)
        if node is not None and self.screen == "node":
            read = self._run.run.artefacts.get
            return node_frame(tree, node, read=read, depth=self._depth), None
        lines = tree.opened(self._opened)
        best = tree.best()
        texts = [tree_line(line, is_best=line.node is best) for line in lines]
        at = self._place(lines)
        if texts:
            texts[at].stylize(CHOSEN)
        return Group(tree_head(tree), *texts), at + HEAD_LINES

    def _press_in_searches(self, key: str) -> None:
        names = list(self._run.watched.standing.searches)
        if key in ("back", "left"):
            self._show("run")
        elif key in STEPS or key in PAGES:
            self._search = _moved(self._search, self._stride(key), of=len(names))
        elif key in ("enter", "right") and names:
            self._run.follow(names[self._search])
            if self._run.tree is not None:
                self._enter_tree(self._run.tree)

    def _press_in_tree(self, key: str, tree: WatchedTree) -> None:
        lines = tree.opened(self._opened)
        node = tree.nodes.get(self._node)
        if key in STEPS or key in PAGES:
            at = _moved(self._place(lines), self._stride(key), of=len(lines))
            self._node = lines[at].node.node if lines else 0
        elif key == "back":
            self._show("searches")
        elif node is None:
            return
        elif key == "right" and node.children:
            self._opened.add(node.node)
        elif key == "left" and node.node in self._opened:
            self._opened.discard(node.node)
        elif key == "left" and node.parent in tree.nodes:
            self._node = node.parent
        elif key == "b":
            self._choose_best(tree)
        elif key == "enter":
            self._show("node")

    def _scroll(self, key: str) -> None:
        self._first = max(0, self._first + self._stride(key))

    def _stride(self, key: str) -> int:
        return STEPS.get(key, PAGES.get(key, 0) * max(1, self._room - 1))

    def _show(self, screen: Screen) -> None:
        self.screen, self._first = screen, 0

    def _enter_tree(self, tree: WatchedTree) -> None:
        self._show("tree")
        self._opened = {
            line.node.node for line in tree.lines(depth=self._depth) if line.depth < self._depth
        }
        self._node = 0
        self._choose_best(tree)

    def _choose_best(self, tree: WatchedTree) -> None:
        best = tree.best()
        at: Node | None = best or next(iter(tree.nodes.values()), None)
        self._node = 0 if at is None else at.node
        while at is not None:
            at = tree.nodes.get(at.parent)
            if at is not None:
                self._opened.add(at.node)

    def _place(self, lines: list[Line]) -> int:
        """Which line is chosen; the first where the node is not among them."""
        numbers = [line.node.node for line in lines]
        if self._node not in numbers:
            self._node = numbers[0] if numbers else 0
            return 0
        return numbers.index(self._node)


def _moved(place: int, by: int, *, of: int) -> int:
    return max(0, min(of - 1, place + by))
