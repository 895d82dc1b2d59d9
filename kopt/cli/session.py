"""One sitting of a fleet: progress while it runs, the closing table or JSON when it ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

from rich.console import Console

from kopt.cli.exit_codes import DONE, FAILED, INTERRUPTED
from kopt.cli.fleet import run_fleet
from kopt.cli.output import write_json
from kopt.cli.progress import Progress
from kopt.cli.summary import summarize, summary_json, summary_text
from kopt.config import RunConfig
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.rundir import RunDir
from kopt.problem import Problem


def run_session(
    config: RunConfig, problems: Sequence[Problem], *, run: RunDir, out: TextIO | None
) -> int:
    """Run a fleet to its end, showing it; return the exit code.

    Args:
        config: validated.
        problems: resolved, in order.
        run: a new run folder, or one to go on with.
        out: where the JSON object goes; None prints the closing table on standard output.

    Raises:
        StoreError: the run folder cannot be used.
        ConfigError: the cluster or device asked for is not there.
    """
    searches = len(problems) * len(config.seed)
    words = Console(stderr=True, highlight=False)
    words.print(
        f"{searches} search(es), at most {config.search.budget} candidates each: {run.path}",
        markup=False,
        soft_wrap=True,
    )
    progress = Progress(searches=searches, budget=config.search.budget, console=words)
    if (run.path / JOURNAL_FOLDER).is_dir():
        progress.begin((record.search, record.body) for record in read_events(run.path))
    try:
        with _termination_interrupts(), progress:
            result = run_fleet(
                config,
                problems,
                run_dir=run,
                observer=progress.observe,
                on_target=progress.on_target,
                warn=progress.say,
            )
    except KeyboardInterrupt:
        sys.stderr.write(f"kopt: interrupted; go on with `kopt resume {run.path}`\n")
        return INTERRUPTED
    summaries = summarize(run, result.state)
    if out is not None:
        write_json(out, summary_json(run, result.state, summaries))
    else:
        sys.stdout.write(summary_text(run, summaries))
    return FAILED if result.failed else DONE


@contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM (a scheduler's first warning) end the run as Ctrl-C does: tidily."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del number, frame
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
