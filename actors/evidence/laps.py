"""How long the stages of a profiled process take, by its own clock; and how such words are read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_STAGES = 10
MAX_STAGE_S = 600.0
MAX_NAME = 20


@dataclass(slots=True)
class Laps:
    """Stages that follow each other."""

    took_s: dict[str, float] = field(default_factory=dict)
    """Stage to its seconds."""
    _last_s: float = field(default_factory=time.monotonic)

    def passed(self, stage: str) -> None:
        """Say that a stage ends here."""
        now_s = time.monotonic()
        self.took_s[stage] = now_s - self._last_s
        self._last_s = now_s


def stage_seconds(said: object) -> dict[str, float]:
    """Return stages and their seconds, of what an untrusted process says; what is none is left."""
    if not isinstance(said, Mapping):
        return {}
    return {
        str(stage)[:MAX_NAME]: float(seconds)
        for stage, seconds in list(said.items())[:MAX_STAGES]
        if isinstance(seconds, int | float) and 0 <= seconds < MAX_STAGE_S
    }
