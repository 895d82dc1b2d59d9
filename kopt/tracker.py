"""The port of experiment trackers: who shows a run's numbers while it runs, elsewhere than here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedRun:
    """What a tracker is told of a run when it opens."""

    name: str
    """The run folder's, with the multirun's before it where it is a job of one."""
    folder: Path
    """The run folder; a tracker that writes files writes them below it unless told otherwise."""
    config: Mapping[str, Any]
    """The resolved configuration, as plain JSON values."""


@runtime_checkable
class Tracker(Protocol):
    """One run in one tracker. Called from one thread; if it fails or hangs, the run goes on."""

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        """Show numbers.

        Args:
            values: name (`best_speedup/builtin-softmax`, `tokens`, …) to value; never NaN.
            step: candidates told so far; never falls. A step may come twice, the later one counts.
        """
        ...

    def close(self) -> None:
        """Write down what is held, once, after the last `log`."""
        ...
