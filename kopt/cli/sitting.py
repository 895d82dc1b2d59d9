"""One sitting of a job: its folder opened, its tasks made, and what came of it written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from kopt.cli.job import Job, JobOutcome, ObservedSink, make_tasks
from kopt.clock import SystemClock
from kopt.data.best import write_best
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal, read_events
from kopt.data.record import Record
from kopt.data.results import write_results
from kopt.driver.task import SearchTask
from kopt.errors import StoreError


@dataclass(slots=True, kw_only=True)
class Sitting:
    """A job while it runs."""

    job: Job
    journal: Journal
    earlier: RunState
    """What its journal had when it began; empty once its driver has it."""
    tasks: list[SearchTask]
    manifest: dict[str, Any] | None
    """As it was when the sitting began; None for a new run."""
    error: Exception | None = None
    sink: ObservedSink | None = None
    """While its driver runs."""
    awaiting: int = 0
    """Expansions that it left open since their answers are awaited."""

    def secret(self, drawn: int) -> int:
        """Return the seed of its hidden inputs: its config's own, else the fleet's."""
        given = self.job.config.evaluate.secret
        return drawn if given is None else given

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to do."""
        return self.earlier.ended is not None and all(task.ended for task in self.tasks)

    def forget(self) -> None:
        """Let go of what the journal had, which the tasks and the driver have taken over.

        It is half a gigabyte in a run of a hundred thousand candidates.
        """
        self.earlier = fold([])


def sit(job: Job, stack: ExitStack) -> Sitting:
    """Open a job's folder and make its tasks.

    Args:
        job: whose folder nobody else drives.
        stack: closes the journal.

    Raises:
        StoreError: another driver has it, it is damaged or cannot be written.
    """
    with ExitStack() as own:
        journal = own.enter_context(
            Journal(job.run_dir.path, run=job.run_dir.name, clock=SystemClock())
        )
        earlier = fold(_recalled(job))
        for problem in job.problems:
            job.run_dir.keep_problem(problem)
        manifest = job.run_dir.read_manifest() if job.run_dir.manifest_path.exists() else None
        if manifest is not None and manifest.get("device") is None and not earlier.searches:
            manifest = None  # it was written before the first search: this sitting completes it
        sitting = Sitting(
            job=job,
            journal=journal,
            earlier=earlier,
            tasks=make_tasks(job.config, job.problems, earlier),
            manifest=manifest,
        )
        stack.push(own.pop_all())
    return sitting


def _recalled(job: Job) -> Iterator[Record]:
    """Give the events of a job's journal, each shown to whoever follows the job."""
    for record in read_events(job.run_dir.path):
        if job.recall is not None:
            job.recall(record.search, record.body)
        yield record


def outcome_of(sitting: Sitting) -> JobOutcome:
    """Write a job's results and its best candidates, and return what became of it.

    Raises:
        StoreError: its journal is damaged.
    """
    job, error = sitting.job, sitting.error
    state = fold(read_events(job.run_dir.path))
    try:
        write_results(job.run_dir, state)
        write_best(job.run_dir, state, keep=job.config.keep_best)
    except StoreError as full:
        error = error or full
    return JobOutcome(job=job, state=state, error=error, awaiting=sitting.awaiting)
