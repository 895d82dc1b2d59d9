"""The trail of one evaluation: what was checked so far, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kopt.evaluation import Check
from kopt.verdict import NumericError, Verdict


class Judged(Exception):
    """The verdict is reached; nothing more is to be done with the candidate."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict)
        self.verdict = verdict


@dataclass(slots=True)
class Trail:
    """What was checked so far."""

    gates: list[Check] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    errors: list[NumericError] = field(default_factory=list)
    library_share: float | None = None
    """Of device time, 0 to 1; None where it is not known (`provenance_gate`)."""

    def passed(self, name: str, detail: str = "") -> None:
        """Note a check that passed."""
        self.checks.append(Check(name=name, passed=True, detail=detail))

    def fail(self, name: str, verdict: Verdict) -> Judged:
        """Note the check that decides, and return what to raise."""
        self.checks.append(Check(name=name, passed=False, detail=verdict.reason))
        return Judged(verdict)

    @contextmanager
    def gate(self, name: str) -> Iterator[None]:
        """Note the outcome of a gate: passed, or failed by the verdict that ends it."""
        try:
            yield
        except Judged as judged:
            self.gates.append(Check(name=name, passed=False, detail=judged.verdict.reason))
            raise
        self.gates.append(Check(name=name, passed=True))
