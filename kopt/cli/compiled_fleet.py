"""`mode=compiled` in a multirun: each model is taken apart once, and put together in every job.

Arms differ in how they search, not in what they search: jobs that compile a model alike share what
came of it, copied into each job's folder, so that each can be resumed and stitched by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kopt.cli.compiled import Taken, take_models_apart
from kopt.cli.compiled_report import begin_without_searches, models_text
from kopt.cli.fleet_entry import FleetEntry
from kopt.cli.job import JobOutcome
from kopt.cli.stitch import stitch_models
from kopt.data.fold import fold


def cut_models(entries: Sequence[FleetEntry]) -> list[FleetEntry]:
    """Return the jobs with the problems that their models were cut into; others as they are.

    A job of which nothing could be cut has no problems, and its manifest says that it began.

    Raises:
        ConfigError: a model's file breaks its contract, or the device asked for is not here.
        StoreError: a record cannot be read, or a folder not be written.
    """
    taken: Taken = {}
    cut = []
    for entry in entries:
        if entry.config.mode == "compiled":
            found = take_models_apart(entry.config, entry.problems, run=entry.run, taken=taken)
            if not found:
                begin_without_searches(entry.config, entry.run)
            entry = entry._replace(problems=found)
        cut.append(entry)
    return cut


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
