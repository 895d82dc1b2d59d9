"""`kopt stats`: what runs reached, how sure that is, and whether one arm is better than another."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.study_arguments import add_study, asked_of, check_study
from kopt.errors import ConfigError

if TYPE_CHECKING:
    from argparse import Namespace

    from kopt.cli.stats_runs import Counted

EPILOG = """\
RUN is a run folder, or a folder of run folders. What does not compare (ladder, device, baseline,
timing protocol, revisions of a problem) is kept apart, and said.

examples:
  kopt stats runs/first
  kopt stats runs/mcts runs/greedy --control greedy-openai
  kopt stats runs/* --over-seeds best --pool --cap 25 --baseline eager   as KernelPro counts
  kopt stats runs/first --json"""


def main(arguments: Sequence[str]) -> int:
    """Count runs and print the tables.

    Raises:
        ConfigError: a folder is no run, nothing in them can be counted, or an argument is wrong.
        StoreError: a journal is damaged, or of another version.
    """
    parser = command_parser(
        "stats",
        description="Statistics of runs: speed-ups with intervals, arms compared pairwise, tools, "
        "outcomes, cost.",
        epilog=EPILOG,
    )
    add_study(parser)
    parser.add_argument(
        "--baseline",
        choices=("recorded", "eager", "compile", "given"),
        default="recorded",
        help="what speed-ups are over; recorded: as each run set it (the default); given: the "
        "kernel that a problem comes with",
    )
    parser.add_argument(
        "--at", metavar="N", type=int, help="compare what searches had after N candidates"
    )
    parser.add_argument(
        "--bootstrap-seed", metavar="N", type=int, default=0, help="of the intervals (0)"
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    _check(options)
    counted = _count(options)
    if options.json:
        from kopt.cli.stats_json import stats_json

        write_json(sys.stdout, stats_json(counted))
    else:
        from kopt.cli.stats_text import stats_text

        sys.stdout.write(stats_text(counted))
    return DONE


def _check(options: Namespace) -> None:
    check_study(options)
    if options.at is not None and options.at < 1:
        raise ConfigError(f"--at: expected 1 or more, found {options.at}")
    if options.bootstrap_seed < 0:
        raise ConfigError(f"--bootstrap-seed: expected 0 or more, found {options.bootstrap_seed}")


def _count(options: Namespace) -> Counted:
    from kopt.cli.stats_runs import count

    asked = asked_of(options, at=options.at, seed=options.bootstrap_seed)
    return count(
        options.runs, asked=asked, over=options.baseline, with_unfinished=options.unfinished
    )
