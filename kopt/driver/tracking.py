"""The strategy tracker as the driver uses it: read when a search begins, added to when it ends.

What a search was told is journalled, so that a resumed one is told the same. The tracker is a help:
a file that cannot be read or written is named once, and the searches go on without.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from kopt.data.evidence_json import evidence_from_json
from kopt.data.memory_json import records_from_json, values_of
from kopt.data.strategies import StrategyFile
from kopt.driver.recollection import Recollection
from kopt.driver.task import SearchTask
from kopt.errors import StoreError
from kopt.events import MemoryUpdated
from kopt.identity import text_id
from kopt.memory.tracker import StrategyRecord, records_of, tallies_of
from kopt.memory.tried import Tried
from kopt.ports import EventSink


class Tracking:
    """Between a fleet's searches and one file of the tracker."""

    def __init__(
        self, strategies: StrategyFile, *, run: str, sink: EventSink, warn: Callable[[str], None]
    ) -> None:
        """Take the parts.

        Args:
            strategies: the file.
            run: what tells the run from any other; contributions are keyed by it.
            sink: of the run.
            warn: shows one line to the user.
        """
        self._strategies = strategies
        self._run = run
        self._sink = sink
        self._warn = warn
        self._faults: set[str] = set()

    def began_with(self, task: SearchTask) -> MemoryUpdated | None:
        """Return what a search begins with, to be journalled; None where it cannot be read."""
        try:
            tallies = self._strategies.read()
        except StoreError as error:
            self._failed(error)
            return None
        records = records_of(tallies, family=task.spec.problem.family)
        return MemoryUpdated(expansion=None, origin="tracker", entries=values_of(records))

    def record(self, task: SearchTask, tried: Sequence[Tried]) -> None:
        """Add what a search tried; a second time takes the place of the first."""
        classes: dict[str | None, str] = {None: ""}
        for each in tried:
            if each.parent not in classes:
                classes[each.parent] = self._bottleneck(task, each.parent)
        key = text_id(f"{self._run}\n{task.spec.name}")[:32]
        tallies = tallies_of(
            ((each, classes[each.parent]) for each in tried), family=task.spec.problem.family
        )
        try:
            self._strategies.record(key, tallies)
        except StoreError as error:
            self._failed(error)

    def _bottleneck(self, task: SearchTask, candidate: str | None) -> str:
        """Return the class of a candidate's profile; empty where it has none."""
        profile = task.profiles.get(candidate or "")
        if profile is None or profile.evidence.ref is None:
            return ""
        try:
            evidence = evidence_from_json(json.loads(self._sink.get_text(profile.evidence.ref)))
        except (StoreError, ValueError):
            return ""  # whoever is told of the profile says so
        roofline = evidence.roofline
        return "" if roofline is None or roofline.bottleneck is None else roofline.bottleneck

    def _failed(self, error: StoreError) -> None:
        text = str(error)
        if text not in self._faults:
            self._faults.add(text)
            self._warn(f"memory.tracker: {text}; the search goes on without it")


def records_told(recollection: Recollection, *, updates: int) -> tuple[StrategyRecord, ...]:
    """Return what the tracker said when a search began; nothing where it was not read.

    Args:
        recollection: of the search.
        updates: that stood in the journal by then.
    """
    update = recollection.began_with("tracker", updates=updates)
    return () if update is None else records_from_json(update.entries)
