"""`kopt report`: one HTML file that shows what runs reached, and the tables behind it as files."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.cli.arguments import command_parser, parse
from kopt.cli.exit_codes import DONE
from kopt.cli.output import write_json
from kopt.cli.study_arguments import add_study, asked_of, check_study
from kopt.errors import ConfigError

if TYPE_CHECKING:
    from argparse import Namespace

PAGE = "report.html"
NEEDED = {"plotly": "plotly", "jinja2": "jinja2", "pygments": "pygments"}
"""Modules that the page is made with, and their distributions."""
MOST = 5000
SCHEMA_VERSION = 1

EPILOG = """\
RUN is a run folder, or a folder of run folders. What does not compare (ladder, device, baseline,
timing protocol) is kept apart, as `kopt stats` keeps it. Searches that have not ended are shown as
trees whether or not they count (--unfinished). The page needs no network; beside it lie
searches.csv, arms.csv, comparisons.csv and stats.json.

examples:
  kopt report runs/first                           writes runs/first/report/report.html
  kopt report runs/mcts runs/greedy --out compared
  kopt report runs/sweep --control mcts-openai --candidates 500"""


def main(arguments: Sequence[str]) -> int:
    """Write the report of runs.

    Raises:
        ConfigError: a folder is no run, nothing in them can be counted, an argument is wrong, or
            what makes pages is not installed.
        StoreError: a journal is damaged, or a file cannot be written.
    """
    parser = command_parser(
        "report",
        description="Write one self-contained HTML file on runs: speed-ups with intervals, "
        "arms compared, search trees with sources and verdicts, cost.",
        epilog=EPILOG,
    )
    add_study(parser)
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the files (RUN/report; ./report of several runs)"
    )
    parser.add_argument("--title", help="of the page (the names of the runs)")
    parser.add_argument(
        "--candidates",
        metavar="N",
        type=int,
        default=MOST,
        help=f"told with source and details; the ways to the best ones always are ({MOST})",
    )
    options = parse(parser, arguments)
    if options is None:
        return DONE
    _check(options)
    written = _write(options)
    if options.json:
        write_json(sys.stdout, {"schema": SCHEMA_VERSION, **written})
    else:
        sys.stdout.write(
            f"{written['page']}: {written['megabytes']} MB, {written['searches']} search(es), "
            f"{written['candidates']} candidate(s), {written['in_full']} of them in full\n"
        )
    return DONE


def _check(options: Namespace) -> None:
    missing = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if missing:
        raise ConfigError(
            f"report: expected {', '.join(missing)} to be installed, found none; "
            "`pip install 'kopt-search[report]'` brings what pages are made with"
        )
    if options.candidates < 0:
        raise ConfigError(f"--candidates: expected 0 or more, found {options.candidates}")
    check_study(options)


def _write(options: Namespace) -> dict[str, float | str | list[str]]:
    import json

    from plotly.offline import get_plotlyjs

    from kopt.cli.stats_json import stats_json
    from kopt.cli.stats_runs import count
    from kopt.data.atomic import make_folder, write_bytes
    from kopt.data.rundir import RunDir
    from kopt.report.csv_tables import arms_csv, comparisons_csv, searches_csv
    from kopt.report.page import html
    from kopt.report.reading import read_run
    from kopt.report.report import make_report

    asked = asked_of(options)
    counted = count(options.runs, asked=asked, over="recorded", with_unfinished=options.unfinished)
    runs = [
        read_run(RunDir.open(run.path), label=run.label, status=run.status) for run in counted.runs
    ]
    report = make_report(
        runs,
        counted.study,
        asked=asked,
        title=options.title or ", ".join(run.label for run in runs),
        most=options.candidates,
        notes=counted.notes,
    )
    folder = _folder(options, [run.path for run in counted.runs])
    page = html(report, plotly_js=get_plotlyjs(), made_ns=time.time_ns())
    texts = {
        PAGE: page,
        "searches.csv": searches_csv(report.rows),
        "arms.csv": arms_csv(counted.study),
        "comparisons.csv": comparisons_csv(counted.study),
        "stats.json": json.dumps(stats_json(counted), ensure_ascii=False, allow_nan=False) + "\n",
    }
    make_folder(folder)
    for name, text in texts.items():
        write_bytes(folder / name, text.encode("utf-8", errors="replace"))
    return {
        "page": str(folder / PAGE),
        "files": [str(folder / name) for name in texts],
        "megabytes": round(len(page.encode("utf-8", errors="replace")) / 1e6, 1),
        "searches": len(report.rows),
        "candidates": report.contents.candidates,
        "in_full": report.contents.told,
    }


def _folder(options: Namespace, paths: Sequence[str]) -> Path:
    if options.out is not None:
        return Path(options.out)
    return Path(paths[0]) / "report" if len(paths) == 1 else Path("report")
