"""`kopt watch`: what a run, or a multirun, does and has found, live or after: from its folder."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence

from rich.console import Console, RenderableType
from rich.live import Live

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.watch_browse import Browse
from kopt.cli.watch_fleet import WatchedFleet
from kopt.cli.watch_json import snapshot
from kopt.cli.watch_keys import Keys
from kopt.cli.watch_tree_view import node_frame, tree_frame
from kopt.cli.watch_view import frame
from kopt.cli.watched_run import WatchedRun
from kopt.data.fleet_file import is_fleet
from kopt.errors import ConfigError

WIDTH = 80
"""Columns where the output is no terminal, and at least."""
EVERY_S = 2.0
SHORTEST_S = 0.2
DEPTH = 3

EPILOG = """\
A run that goes on is shown until it ends, or until q or Ctrl-C; the run itself is not touched.
Keys lead from the run to its searches, their trees and each node (the last line says which); with
--browse through a run that has ended, too. Where the output is no terminal, one frame is printed.

examples:
  kopt watch runs/first
  kopt watch runs/first --browse
  kopt watch runs/first --search builtin/softmax/default/0 --depth 6
  kopt watch runs/first --search builtin/softmax/default/0 --node 12
  kopt watch runs/first --json
  kopt watch runs/arms                           all jobs of a multirun"""


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
    parser.add_argument("run", metavar="RUN", help="a run folder, or a multirun's")
    parser.add_argument("--search", metavar="NAME", help="show the tree of problem/arm/seed")
    parser.add_argument(
        "--node", metavar="N", help="of that tree: one node, its verdict, findings and diff"
    )
    parser.add_argument(
        "--depth", metavar="N", type=int, default=DEPTH, help=f"levels of the tree ({DEPTH})"
    )
    parser.add_argument("--once", action="store_true", help="print one frame and leave")
    parser.add_argument(
        "--browse", action="store_true", help="walk by keys through a run that has ended, too"
    )
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
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    if is_fleet(options.run):
        return _watch_fleet(options, console)
    run = WatchedRun(options.run, search=options.search)
    run.look()
    run.check_search()
    if options.json:
        write_json(sys.stdout, snapshot(run.watched, run.moment, tree=run.tree))
        return DONE
    if options.browse and not (console.is_terminal and sys.stdin.isatty()):
        raise ConfigError("--browse: expected a terminal to read keys from and to draw on")

    def draw() -> RenderableType:
        return _frame(run, node=options.node, depth=options.depth)

    if options.once or not console.is_terminal or not (options.browse or run.is_driven):
        console.print(draw())
    elif sys.stdin.isatty():
        view = Browse(run, node=options.node, depth=options.depth)
        _browse(run, view, console=console, every_s=options.every)
    else:
        _follow(run, draw, console=console, every_s=options.every)
    return DONE


def _watch_fleet(options: Namespace, console: Console) -> int:
    """Show all jobs of a multirun."""
    if options.search is not None or options.browse:
        raise ConfigError(
            f"--search, --browse: expected the run folder of one job, such as {options.run}/0, "
            "found a multirun's"
        )
    fleet = WatchedFleet(options.run)
    fleet.look()
    if options.json:
        write_json(sys.stdout, fleet.snapshot())
    elif options.once or not console.is_terminal or not fleet.is_driven:
        console.print(fleet.frame())
    else:
        _follow(fleet, fleet.frame, console=console, every_s=options.every)
    return DONE


def _frame(run: WatchedRun, *, node: str | None, depth: int) -> RenderableType:
    if run.tree is None:
        return frame(run.watched, run.moment)
    if node is None:
        return tree_frame(run.tree, depth=depth)
    return node_frame(run.tree, run.tree.find(node), read=run.run.artefacts.get, depth=depth)


def _follow(
    watched: WatchedRun | WatchedFleet,
    draw: Callable[[], RenderableType],
    *,
    console: Console,
    every_s: float,
) -> None:
    """Show a run, or several, until nobody drives them any more, or the user leaves."""
    try:
        with Live(draw(), console=console, auto_refresh=False, transient=True) as live:
            while watched.is_driven:
                time.sleep(every_s)
                if watched.look():
                    live.update(draw(), refresh=True)
    except KeyboardInterrupt:
        pass
    console.print(draw())


def _browse(run: WatchedRun, view: Browse, *, console: Console, every_s: float) -> None:
    """The same, led by keys. A run that ends is left by itself where it is shown as a whole."""
    was_driven = run.is_driven
    looked_s = time.monotonic()
    try:
        with (
            Keys(sys.stdin.fileno()) as keys,
            Live(view.draw(console), console=console, auto_refresh=False, screen=True) as live,
        ):
            while not (view.screen == "run" and was_driven and not run.is_driven):
                pressed = keys.wait(max(0.0, looked_s + every_s - time.monotonic()))
                if not all(map(view.press, pressed)):
                    break
                is_new = bool(pressed)
                if time.monotonic() >= looked_s + every_s:
                    is_new |= run.look()
                    looked_s = time.monotonic()
                if is_new:
                    live.update(view.draw(console), refresh=True)
    except KeyboardInterrupt:
        pass
    console.print(frame(run.watched, run.moment))
