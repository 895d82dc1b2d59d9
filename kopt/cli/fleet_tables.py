"""The statistics at the end of a multirun: what `kopt stats` says of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kopt.analysis.config import StatsConfig
from kopt.analysis.study import Asked
from kopt.cli.job import JobOutcome
from kopt.cli.stats_runs import count
from kopt.cli.stats_text import stats_text
from kopt.errors import KoptError


def fleet_tables(whole: Path, outcomes: Sequence[JobOutcome], *, stats: StatsConfig) -> str:
    """Return the tables of the arms, and the command that prints them again.

    Args:
        whole: the multirun's folder.
        outcomes: of its jobs.
        stats: how they count.
    """
    asked = Asked(over_seeds=stats.over_seeds, cap=stats.cap, pool=stats.pool)
    try:
        counted = count(
            [str(outcome.job.run_dir.path) for outcome in outcomes],
            asked=asked,
            over="recorded",
            with_unfinished=False,
        )
    except KoptError as error:  # no search has ended, or a disk is full: the jobs' table says it
        text = "".join(f"note: {line}\n" for line in str(error).splitlines())
    else:
        text = stats_text(counted).lstrip("\n")
    words = f"kopt stats {whole} {stats.words}".rstrip()
    return f"{text}\nstatistics: {words}\nfolder: {whole}\n"
