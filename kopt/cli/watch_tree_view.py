"""How a watched search's tree is shown: a line a node, or one node with all that is known of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from kopt.cli.watch_tree import Line, Node, WatchedTree

MAX_LINES = 200
"""Nodes shown at most; `--node` and `--depth` choose others."""
HEAD_LINES = 2
MAX_DIFF = 60
"""Lines of a diff to the parent."""
STYLES = {"correct": "green", "cheated": "magenta"}
"""Of verdicts; others are failures. Each is also said in words."""
FAILED_STYLE = "red"


def tree_frame(tree: WatchedTree, *, depth: int, root: Node | None = None) -> RenderableType:
    """Return a search's tree, or a node with what is below it.

    Args:
        tree: of the search.
        depth: nodes further down are counted, not shown, but for the way to the best.
        root: shown with what is below it; None shows all.
    """
    lines = tree.lines(depth=depth, root=root)
    best = tree.best()
    shown = [tree_line(line, is_best=line.node is best) for line in lines[:MAX_LINES]]
    hidden = len(lines) - MAX_LINES
    more = [Text(f"… and {hidden} more nodes")] if hidden > 0 else []
    return Group(tree_head(tree), *shown, *more)


def tree_head(tree: WatchedTree) -> Text:
    """Return HEAD_LINES lines on a search's tree as a whole."""
    best = tree.best()
    head = f"{tree.search}\n{len(tree.nodes)} nodes, {tree.pending} under way"
    if best is not None:
        head += f"; best is node {best.node}, {_speedup(best)}"
    return Text(head, overflow="ellipsis", no_wrap=True)


def node_frame(
    tree: WatchedTree, node: Node, *, read: Callable[[str], str], depth: int
) -> RenderableType:
    """Return one node: its verdict, findings, the change from its parent, and what is below it.

    Args:
        tree: that it is in.
        node: that is shown.
        read: gives the text of an artefact.
        depth: as `tree_frame` has it, counted from the node.
    """
    evaluation = node.evaluation
    gates = ", ".join(
        f"{gate['name']} {'passed' if gate['passed'] else 'failed'}" for gate in evaluation["gates"]
    )
    times = ", ".join(f"{name} {value:.2f} s" for name, value in evaluation["timeline_s"].items())
    lines = [
        f"node {node.node} of {tree.search}, child of {node.parent or 'ROOT'}",
        f"candidate {node.made.candidate} ({node.made.language}, by {node.made.programmer})",
        f"strategy  {node.made.strategy}",
        f"verdict   {_verdict(node)}, reward {node.reward:+.3f}",
        f"reason    {evaluation['reason']}",
        f"gates     {gates}",
        f"timeline  {times}",
    ]
    parts: list[RenderableType] = [Text(line) for line in lines]
    found = tree.findings.get(node.made.candidate)
    parts += [
        Text(f"finding   {finding['severity']}: {finding['title']}")
        for finding in (found.findings if found is not None else ())
    ]
    parts.append(Text())
    parts += [Text(line, overflow="ellipsis", no_wrap=True) for line in _diff(tree, node, read)]
    if node.children:
        parts += [Text(), tree_frame(tree, depth=depth, root=node)]
    return Group(*parts)


def tree_line(line: Line, *, is_best: bool) -> Text:
    """Return a node of a tree as one line: number, verdict, what is hidden below it, strategy."""
    node = line.node
    kind = node.evaluation["kind"]
    text = Text("  " * (line.depth - 1 if line.depth else 0), overflow="ellipsis", no_wrap=True)
    text.append(f"{node.node} ", style="bold" if is_best else "")
    text.append(_verdict(node), style=STYLES.get(kind, FAILED_STYLE))
    if is_best:
        text.append(" (best)", style="bold")
    if line.hidden:
        text.append(f" +{line.hidden} below")
    text.append(f"  {' '.join(node.made.strategy.split())}")
    return text


def _verdict(node: Node) -> str:
    kind = node.evaluation["kind"]
    return f"{kind} {_speedup(node)}" if kind == "correct" else kind


def _speedup(node: Node) -> str:
    return f"{node.evaluation['speedup'] or 0.0:.2f}x"


def _diff(tree: WatchedTree, node: Node, read: Callable[[str], str]) -> list[str]:
    parent = tree.nodes.get(node.parent)
    own = read(node.made.source).splitlines()
    if parent is None:
        lines = [f"source ({len(own)} lines)", *own]
    else:
        before = read(parent.made.source).splitlines()
        changes = difflib.unified_diff(
            before, own, f"node {parent.node}", f"node {node.node}", lineterm=""
        )
        lines = list(changes) or [f"the same source as node {parent.node}"]
    hidden = len(lines) - MAX_DIFF
    return [*lines[:MAX_DIFF], *([f"… and {hidden} more lines"] if hidden > 0 else [])]
