"""One sitting of a multirun: its jobs as one fleet, shown while they run, told of when they end."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console

from kopt.cli.exit_codes import DONE, FAILED, INTERRUPTED, SUSPENDED
from kopt.cli.fleet import run_fleet
from kopt.cli.fleet_entry import FleetEntry
from kopt.cli.fleet_summary import fleet_json, fleet_text, mean_speedup
from kopt.cli.fleet_tables import fleet_tables
from kopt.cli.interrupts import interruptible
from kopt.cli.job import Job, JobOutcome, Observer
from kopt.cli.output import reserved_stdout, write_json
from kopt.cli.prepared import Prepared, Refused
from kopt.cli.progress import Progress
from kopt.cli.suspended import suspended_line
from kopt.cli.tracked import tracked
from kopt.data.fleet_file import FleetJob, is_fleet, read_fleet_file, write_fleet_file
from kopt.data.rundir import RunDir
from kopt.data.seeds import keep_seeds
from kopt.events import EventBody


def begin_fleet(
    ready: Sequence[Prepared], refused: Sequence[Refused], *, as_json: bool
) -> tuple[int, dict[int, float]]:
    """Start the jobs of a multirun and run them to their end.

    Args:
        ready: at least one, each with its folder.
        refused: those that cannot run, told of again at the end.
        as_json: print one JSON object instead of the table.

    Returns:
        The exit code, and by job number its geometric mean speed-up.

    Raises:
        ConfigError: the cluster is not there.
        StoreError: the multirun's folder cannot be written.
    """
    folders = [RunDir(_folder(job)) for job in ready]
    whole = Path(os.path.commonpath([run.path.resolve().parent for run in folders]))
    earlier = read_fleet_file(whole) if is_fleet(whole) else []  # of an earlier batch of Hydra's
    write_fleet_file(
        whole,
        [
            *earlier,
            *(
                FleetJob(
                    folder=str(run.path.resolve().relative_to(whole)),
                    arm=job.config.arm_name,
                    overrides=job.overrides,
                )
                for run, job in zip(folders, ready, strict=True)
            ),
        ],
    )
    for run, job in zip(folders, ready, strict=True):
        if job.config.search.seeds:
            keep_seeds(run, job.seeds)
    for note in dict.fromkeys(line for job in ready for line in job.config.notes):
        sys.stderr.write(f"kopt: {note}\n")
    entries = [
        FleetEntry(str(job.number), job.config, job.problems, run)
        for run, job in zip(folders, ready, strict=True)
    ]
    code, outcomes = run_together(
        entries,
        whole=_shown(whole),
        refused=refused,
        as_json=as_json,
    )
    reached = {outcome.job.run_dir.path: mean_speedup(outcome) for outcome in outcomes}
    means = {
        job.number: reached[run.path]
        for job, run in zip(ready, folders, strict=True)
        if run.path in reached
    }
    return code, means


def run_together(
    jobs: Sequence[FleetEntry],
    *,
    whole: Path,
    refused: Sequence[Refused] = (),
    as_json: bool,
) -> tuple[int, list[JobOutcome]]:
    """Run jobs as one fleet to its end, showing it.

    Args:
        jobs: label, config, problems and run folder of each; at least one. Compiled models of
            jobs that begin, or had not begun their searches, are taken apart first.
        whole: the multirun's folder.
        refused: jobs that could not run.
        as_json: print one JSON object instead of the table.

    Returns:
        The exit code, and what became of each job; nothing of them if the user stopped it.

    Raises:
        ConfigError: they cannot be one fleet, or the cluster is not there.
    """
    if not as_json:
        return _run(jobs, whole=whole, refused=refused, out=None)
    with reserved_stdout() as out:
        return _run(jobs, whole=whole, refused=refused, out=out)


def _run(
    jobs: Sequence[FleetEntry],
    *,
    whole: Path,
    refused: Sequence[Refused],
    out: TextIO | None,
) -> tuple[int, list[JobOutcome]]:
    resume = f"kopt resume {whole}"
    if any(job.config.mode == "compiled" for job in jobs):
        from kopt.cli.compiled_fleet import cut_models
        from kopt.cli.compiled_run import suspended

        try:
            with interruptible():
                cut = cut_models(jobs)
        except KeyboardInterrupt:
            is_begun = all(job.run.manifest_path.is_file() for job in jobs)
            more = f"; go on with `{resume}`" if is_begun else ": nothing was begun"
            sys.stderr.write(f"kopt: interrupted{more}\n")
            return INTERRUPTED, []
        if cut.awaiting:
            return suspended(cut.waiting, cut.awaiting, resume=resume, out=out), []
        jobs = cut.entries
    searches = sum(len(job.problems) * len(job.config.seed) for job in jobs)
    candidates = sum(
        len(job.problems) * len(job.config.seed) * job.config.search.budget for job in jobs
    )
    words = Console(stderr=True, highlight=False)
    words.print(
        f"{len(jobs)} job(s), {searches} search(es), at most {candidates} candidates: {whole}",
        markup=False,
        soft_wrap=True,
    )
    progress = Progress(
        searches=searches, budget=math.ceil(candidates / max(1, searches)), console=words
    )
    try:
        with interruptible(), ExitStack() as stack:
            stack.enter_context(progress)
            started = [
                Job(
                    config=job.config,
                    problems=job.problems,
                    run_dir=job.run,
                    observer=tracked(
                        partial(_labelled, progress.observe, job.label),
                        job.config,
                        job.run,
                        stack=stack,
                        warn=progress.say,
                        name=f"{whole.name}-{job.label}",
                    ),
                    recall=partial(_labelled, progress.recall, job.label),
                    label=f"job {job.label}",
                )
                for job in jobs
                if job.problems  # of a compiled model of which nothing could be cut there are none
            ]
            outcomes: list[JobOutcome] = []
            if started:
                outcomes = run_fleet(
                    started, resume=resume, on_target=progress.on_target, warn=progress.say
                )
    except KeyboardInterrupt:
        sys.stderr.write(f"kopt: interrupted; go on with `{resume}`\n")
        return INTERRUPTED, []
    labels = [job.label for job in jobs if job.problems]
    if out is None:
        sys.stdout.write(f"{fleet_text(labels, outcomes, refused)}\n")
        sys.stdout.flush()  # a large fleet takes a minute to count
        if outcomes:
            stats = jobs[0].config.fleet.stats
            sys.stdout.write(fleet_tables(whole, outcomes, stats=stats))
            sys.stdout.flush()
    try:
        with interruptible():
            models, models_told = _closed(jobs, outcomes)
    except KeyboardInterrupt:
        sys.stderr.write(f"kopt: interrupted; go on with `{resume}`\n")
        return INTERRUPTED, []
    if out is None:
        sys.stdout.write(models_told)
    else:
        write_json(out, {**fleet_json(whole, labels, outcomes, refused), **models})
    if any(outcome.awaiting for outcome in outcomes):
        sys.stderr.write(f"{suspended_line(outcomes, resume=resume)}\n")
        return SUSPENDED, outcomes
    failed = any(outcome.failed or outcome.error for outcome in outcomes)
    return FAILED if failed else DONE, outcomes


def _closed(
    jobs: Sequence[FleetEntry], outcomes: Sequence[JobOutcome]
) -> tuple[dict[str, Any], str]:
    """Put the compiled models of all jobs together; what JSON and text add of them."""
    if not any(job.config.mode == "compiled" for job in jobs):
        return {}, ""
    from kopt.cli.compiled_fleet import closed_models

    return closed_models(jobs, outcomes)


def _labelled(observer: Observer, label: str, search: str, body: EventBody) -> None:
    """Searches of two jobs may have one name, where an arm is repeated at another setting."""
    observer(f"{label}:{search}", body)


def _folder(job: Prepared) -> Path:
    assert job.folder is not None, "Hydra gives each job of a multirun its folder"
    return job.folder


def _shown(folder: Path) -> Path:
    """A folder as the user would name it: from where he stands, if it is below."""
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder
