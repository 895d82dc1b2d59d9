"""A run with its tracker: the observers of a job's events, put together. Nothing without one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from kopt.actors.trackers.config import NoTrackerConfig
from kopt.cli.job import Observer
from kopt.config import RunConfig, to_plain
from kopt.data.journal_files import JOURNAL_FOLDER, read_events
from kopt.data.rundir import RunDir
from kopt.events import EventBody
from kopt.tracker import TrackedRun


def tracked(
    observer: Observer,
    config: RunConfig,
    run: RunDir,
    *,
    stack: ExitStack,
    warn: Callable[[str], None],
    name: str | None = None,
) -> Observer:
    """Return an observer that tells the run's tracker too; the observer itself where it has none.

    Args:
        observer: who hears of every event first.
        config: of the run; `tracker` says which.
        run: its folder; what its journal holds already is told first.
        stack: closes the tracker.
        warn: shows one line where the tracker fails.
        name: what the tracker calls the run; None: its folder's name.
    """
    if isinstance(config.tracker, NoTrackerConfig):
        return observer
    from kopt.actors.trackers.table import open_tracker
    from kopt.driver.tracker_feed import TrackerFeed

    about = TrackedRun(name=name or run.name, folder=run.path, config=to_plain(config))
    has_journal = (run.path / JOURNAL_FOLDER).is_dir()
    feed = TrackerFeed(
        partial(open_tracker, config.tracker, about),
        kind=config.tracker.kind,
        warn=warn,
        earlier=((each.search, each.body) for each in read_events(run.path)) if has_journal else (),
    )
    stack.enter_context(feed)

    def observe(search: str, event: EventBody) -> None:
        observer(search, event)
        feed.observe(search, event)

    return observe
