"""An iteration: one expansion that is over, as the extractor of a memory is shown it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kopt.expansion import Mode
from kopt.memory.tried import Tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """What an expansion came to."""

    expansion: int
    mode: Mode
    tried: tuple[Tried, ...]
    """Its candidates that were told, in the order of their slots."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Tools that its author called: `name`, `arguments`, `result`, as text. Untrusted."""
    faults: tuple[str, ...] = ()
    """Why completions held no candidate, a line each. Untrusted."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to learn from: nothing was written, and nobody was asked."""
        return not (self.tried or self.calls or self.faults)
