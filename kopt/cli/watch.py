"""`kopt watch`: what a run does and has found, live or finished, from its folder alone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console, RenderableType
from rich.live import Live

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.watch_json import snapshot
from kopt.cli.watch_tree_view import node_frame, tree_frame
from kopt.cli.watch_view import frame
from kopt.cli.watched_run import WatchedRun
from kopt.errors import ConfigError

WIDTH = 80
"""Columns where the output is no terminal, and at least."""
EVERY_S = 2.0
SHORTEST_S = 0.2
DEPTH = 3

EPILOG = """\
A run that goes on is shown until it ends, or until Ctrl-C; the run itself is not touched. Where
the output is no terminal, one frame is printed.

examples:
  kopt watch runs/first
  kopt watch runs/first --search builtin/softmax/default/0 --depth 6
  kopt watch runs/first --search builtin/softmax/default/0 --node 12
  kopt watch runs/first --json"""


def main(arguments: Sequence[str]) -> int:
    """Show a run.

    Raises:
        ConfigError: there is no such run, search or node, or another version wrote it.
        StoreError: the journal is damaged.
        KeyboardInterrupt: the user has seen enough of something that was not shown yet.
    """
    parser = command_parser(
        "watch",
        description="Show what a run does now and what it has found so far.",
        epilog=EPILOG,
    )
    parser.add_argument("run", metavar="RUN", help="a run folder, such as runs/first")
    parser.add_argument("--search", metavar="NAME", help="show the tree of problem/arm/seed")
    parser.add_argument(
        "--node", metavar="N", help="of that tree: one node, its verdict, findings and diff"
    )
    parser.add_argument(
        "--depth", metavar="N", type=int, default=DEPTH, help=f"levels of the tree ({DEPTH})"
    )
    parser.add_argument("--once", action="store_true", help="print one frame and leave")
    parser.add_argument(
        "--every", metavar="S", type=float, default=EVERY_S, help=f"seconds a frame ({EVERY_S:g})"
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    if options.node is not None and options.search is None:
        raise ConfigError("--node: expected --search NAME beside it, the search that it is of")
    if options.depth < 1:
        raise ConfigError(f"--depth: expected 1 or more, found {options.depth}")
    if not options.every >= SHORTEST_S:
        raise ConfigError(f"--every: expected {SHORTEST_S:g} s or more, found {options.every:g}")
    run = WatchedRun(options.run, search=options.search)
    run.look()
    run.check_search()
    if options.json:
        write_json(sys.stdout, snapshot(run.watched, run.moment, tree=run.tree))
        return DONE
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)

    def draw() -> RenderableType:
        return _frame(run, node=options.node, depth=options.depth)

    if options.once or not console.is_terminal or run.moment.owner is None:
        console.print(draw())
        return DONE
    _follow(run, draw, console=console, every_s=options.every)
    return DONE


def _frame(run: WatchedRun, *, node: str | None, depth: int) -> RenderableType:
    if run.tree is None:
        return frame(run.watched, run.moment)
    if node is None:
        return tree_frame(run.tree, depth=depth)
    return node_frame(run.tree, run.tree.find(node), read=run.run.artefacts.get, depth=depth)


def _follow(
    run: WatchedRun, draw: Callable[[], RenderableType], *, console: Console, every_s: float
) -> None:
    """Show a run until nobody drives it any more, or the user leaves."""
    try:
        with Live(draw(), console=console, auto_refresh=False, transient=True) as live:
            while run.moment.owner is not None:
                time.sleep(every_s)
                if run.look():
                    live.update(draw(), refresh=True)
    except KeyboardInterrupt:
        pass
    console.print(draw())
