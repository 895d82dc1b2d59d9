"""One sitting of a run: progress while it runs, the closing table or JSON when it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TextIO

from rich.console import Console

from kopt.cli.exit_codes import DONE, FAILED, INTERRUPTED, SUSPENDED
from kopt.cli.fleet import run_fleet
from kopt.cli.interrupts import interruptible
from kopt.cli.job import Job
from kopt.cli.output import write_json
from kopt.cli.progress import Progress
from kopt.cli.summary import summarize, summary_json, summary_text
from kopt.cli.suspended import suspended_line
from kopt.cli.tracked import tracked
from kopt.config import RunConfig
from kopt.data.rundir import RunDir
from kopt.problem import Problem


def run_session(
    config: RunConfig, problems: Sequence[Problem], *, run: RunDir, out: TextIO | None
) -> int:
    """Run one job to its end, showing it; return the exit code.

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
    resume = f"kopt resume {run.path}"
    try:
        with interruptible(), progress, ExitStack() as stack:
            observer = tracked(progress.observe, config, run, stack=stack, warn=progress.say)
            job = Job(
                config=config,
                problems=problems,
                run_dir=run,
                observer=observer,
                recall=progress.recall,
            )
            (outcome,) = run_fleet(
                [job], resume=resume, on_target=progress.on_target, warn=progress.say
            )
    except KeyboardInterrupt:
        sys.stderr.write(f"kopt: interrupted; go on with `{resume}`\n")
        return INTERRUPTED
    if outcome.error is not None:
        raise outcome.error
    summaries = summarize(run, outcome.state)
    told = summary_json(run, outcome.state, summaries) if out is not None else {}
    if out is None:
        sys.stdout.write(summary_text(run, summaries))
    if config.mode == "compiled" and not outcome.awaiting:
        from kopt.cli.compiled_report import close_models

        try:
            with interruptible():
                told |= close_models(config, run, outcome.state, as_text=out is None)
        except KeyboardInterrupt:
            sys.stderr.write(f"kopt: interrupted; go on with `{resume}`\n")
            return INTERRUPTED
    if out is not None:
        write_json(out, {**told, "awaiting": outcome.awaiting})
    if outcome.awaiting:
        sys.stderr.write(f"{suspended_line([outcome], resume=resume)}\n")
        return SUSPENDED
    return FAILED if outcome.failed else DONE
