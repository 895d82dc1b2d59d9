"""The arguments of commands that count runs: which runs, and how they are counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kopt.errors import ConfigError

if TYPE_CHECKING:
    from argparse import Namespace

    from kopt.analysis.study import Asked
    from kopt.cli.arguments import Parser


def add_study(parser: Parser) -> None:
    """Add the arguments that `asked_of` takes, and `runs` and `unfinished`."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run folder, or a folder of them")
    parser.add_argument(
        "--over-seeds",
        choices=("mean", "best"),
        default="mean",
        help="a problem's score by its searches: geometric mean (the default), or the best",
    )
    parser.add_argument(
        "--cap", metavar="X", type=float, help="most that a search counts in comparisons and best@N"
    )
    parser.add_argument("--control", metavar="ARM", help="hold the other arms against this one")
    parser.add_argument(
        "--pool",
        action="store_true",
        help="runs of one arm's name are its repetitions, though their settings differ",
    )
    parser.add_argument(
        "--unfinished", action="store_true", help="count searches that have not ended, as they are"
    )


def check_study(options: Namespace) -> None:
    """Check what the parser could not.

    Raises:
        ConfigError: a number is out of range.
    """
    cap = options.cap
    if cap is not None and not (math.isfinite(cap) and cap > 1.0):
        raise ConfigError(f"--cap: expected a number above 1, found {cap:g}")


def asked_of(options: Namespace, *, at: int | None = None, seed: int = 0) -> Asked:
    """Return how the runs are counted.

    Args:
        options: of `add_study`.
        at: candidates after which searches are compared; None: at their end.
        seed: of the bootstrap.
    """
    from kopt.analysis.study import Asked

    return Asked(
        over_seeds=options.over_seeds,
        cap=options.cap,
        at=at,
        control=options.control,
        seed=seed,
        pool=options.pool,
    )
