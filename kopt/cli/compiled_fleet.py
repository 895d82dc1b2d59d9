"""`mode=compiled` in a multirun: each model is taken apart once, and put together in every job.

Arms differ in how they search, not in what they search: jobs that compile a model alike share what
came of it, copied into each job's folder, so that each can be resumed and stitched by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from kopt.cli.compiled import CompiledJob, Taken, problems_of, take_models_apart
from kopt.cli.compiled_report import begin_without_searches, models_text
from kopt.cli.fleet_entry import FleetEntry
from kopt.cli.job import JobOutcome
from kopt.cli.stitch import stitch_models
from kopt.cli.strategist import settle_groups
from kopt.data.fold import fold


class CutJobs(NamedTuple):
    """Jobs whose models were cut into problems."""

    entries: list[FleetEntry]
    waiting: list[CompiledJob]
    """Jobs of which answers of the strategist are awaited: none of all is to begin."""
    awaiting: int
    """Such answers."""


def cut_models(entries: Sequence[FleetEntry]) -> CutJobs:
    """Return the jobs with the problems that their models were cut into; others as they are.

    A job of which nothing could be cut has no problems, and its manifest says that it began. Of a
    job that is gone on with, the models are those that it took apart before.

    Raises:
        ConfigError: a model's file breaks its contract, or the device asked for is not here.
        StoreError: a record cannot be read, or a folder not be written.
    """
    taken: Taken = {}
    jobs: dict[int, CompiledJob] = {}
    for number, entry in enumerate(entries):
        if entry.config.mode != "compiled" or (not entry.models and entry.is_resumed):
            continue
        models = entry.models
        if not entry.is_resumed:
            models = take_models_apart(entry.config, entry.problems, run=entry.run, taken=taken)
        jobs[number] = CompiledJob(config=entry.config, run=entry.run, models=models)
    if any(job.open_models for job in jobs.values()):
        _keep_all(entries)
    settled, awaiting = settle_groups(list(jobs.values()))
    if awaiting:
        waiting = [job for job in jobs.values() if job.open_models]
        return CutJobs(list(entries), waiting, awaiting)
    cut = list(entries)
    for number, models in zip(jobs, settled, strict=True):
        entry = entries[number]
        problems = problems_of(models)
        if not problems:
            begin_without_searches(entry.config, entry.run)
        cut[number] = entry._replace(problems=problems)
    return CutJobs(cut, [], 0)


def _keep_all(entries: Sequence[FleetEntry]) -> None:
    """Write what a resume needs of every job: some are about to ask, and none has begun."""
    for entry in entries:
        if entry.run.manifest_path.is_file():
            continue
        begin_without_searches(entry.config, entry.run)
        if entry.config.mode != "compiled":
            for problem in entry.problems:
                entry.run.keep_problem(problem)


def closed_models(
    entries: Sequence[FleetEntry], outcomes: Sequence[JobOutcome]
) -> tuple[dict[str, Any], str]:
    """Stitch the models of every job whose searches are over.

    Args:
        entries: all jobs of the multirun, in order.
        outcomes: of those that had something to search.

    Returns:
        What the multirun's JSON adds: `models`, the reports by job; and a table of each job's.

    Raises:
        StoreError: a record cannot be read, or a file not be written.
        ConfigError: the device asked for is not here.
    """
    ended = {
        outcome.job.run_dir.path: outcome.state
        for outcome in outcomes
        if not outcome.awaiting and outcome.error is None
    }
    told: dict[str, list[dict[str, Any]]] = {}
    text = ""
    for entry in entries:
        is_over = entry.run.path in ended or not entry.problems
        if entry.config.mode != "compiled" or not is_over:
            continue
        reports = stitch_models(entry.config, entry.run, ended.get(entry.run.path, fold([])))
        told[entry.label] = [asdict(report) for report in reports]
        text += f"\njob {entry.label}, arm {entry.config.arm_name}{models_text(entry.run, reports)}"
    return {"models": told}, text
