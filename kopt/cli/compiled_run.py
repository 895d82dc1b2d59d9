"""One run of `mode=compiled`, from models that were taken apart to its searches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from kopt.cli.compiled import CompiledJob, TakenModel, problems_of
from kopt.cli.compiled_report import close_without_searches
from kopt.cli.exit_codes import INTERRUPTED, SUSPENDED
from kopt.cli.interrupts import interruptible
from kopt.cli.job import Job, JobOutcome
from kopt.cli.output import write_json
from kopt.cli.session import run_session
from kopt.cli.strategist import settle_groups
from kopt.cli.suspended import suspended_line
from kopt.config import RunConfig
from kopt.data.fold import fold
from kopt.data.rundir import RunDir


def run_compiled(
    config: RunConfig, models: Sequence[TakenModel], *, run: RunDir, out: TextIO | None
) -> int:
    """Search what compiled models were cut into; return the exit code.

    Args:
        config: of the run.
        models: taken apart, by the rule's groups where the strategist was not asked yet.
        run: its folder.
        out: where the JSON object goes; None prints text on standard output.

    Raises:
        ConfigError: the cluster, its device or the programmer cannot be had.
        StoreError: the run folder cannot be used.
    """
    resume = f"kopt resume {run.path}"
    job = CompiledJob(config=config, run=run, models=models)
    try:
        with interruptible():
            (settled,), awaiting = settle_groups([job])
    except KeyboardInterrupt:
        sys.stderr.write(f"kopt: interrupted; go on with `{resume}`\n")
        return INTERRUPTED
    if awaiting:
        return suspended([job], awaiting, resume=resume, out=out)
    problems = problems_of(settled)
    if not problems:
        return close_without_searches(config, run, out=out)
    return run_session(config, problems, run=run, out=out)


def suspended(
    jobs: Sequence[CompiledJob], awaiting: int, *, resume: str, out: TextIO | None
) -> int:
    """Say that the strategist's answers are awaited; return the exit code.

    Args:
        jobs: that wait, at least one.
        awaiting: answers.
        resume: the command that goes on.
        out: where the JSON object goes; None: there is none.
    """
    first = jobs[0]
    job = Job(config=first.config, problems=(), run_dir=first.run, observer=lambda _s, _b: None)
    outcome = JobOutcome(job=job, state=fold([]), awaiting=awaiting)
    if out is not None:
        write_json(out, {"run": first.run.name, "path": str(first.run.path), "awaiting": awaiting})
    sys.stderr.write(f"{suspended_line([outcome], resume=resume)}\n")
    return SUSPENDED
