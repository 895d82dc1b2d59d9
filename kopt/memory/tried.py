"""What was tried: a judged candidate as far as later prompts are told of it."""

from __future__ import annotations

from dataclasses import dataclass

from kopt.evaluation import Evaluation
from kopt.verdict import Correct, VerdictKind

MAX_REASON = 300
"""Characters kept of a verdict's one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One candidate, what was meant by it, and what became of it."""

    candidate: str
    parent: str | None
    """Candidate that it was made from; None for a fresh one."""
    expansion: int
    """In which it was written."""
    strategy: str
    """What its author meant to do; may be empty."""
    language: str
    kind: VerdictKind
    reason: str
    """The verdict in one line."""
    speedup: float | None = None
    """Over the baseline; None unless correct."""
    time_us: float | None = None
    """Of one call; None unless correct."""
    baseline_us: float | None = None
    """Of one call of the baseline, in the race that gave the speed-up; None unless correct."""
    speedup_ci: tuple[float, float] | None = None
    over: float = 1.0
    """Speed-up of what it was made from, where that was right; else 1, the baseline itself."""
    parent_kind: VerdictKind | None = None
    """What became of what it was made from; None for a fresh one."""
    parent_reason: str = ""
    signal: str = ""
    """What the tools found first of what it was made from; empty where that was not profiled."""

    @property
    def gain(self) -> float | None:
        """Return by how much the change made it faster (below 1: slower); None unless correct."""
        return None if self.speedup is None else self.speedup / self.over

    @property
    def improved(self) -> bool:
        """Whether it is right and faster than what it was made from, beyond its noise."""
        return self.speedup_ci is not None and self.speedup_ci[0] > self.over

    @property
    def regressed(self) -> bool:
        """Whether it is right and slower than what it was made from, beyond its noise."""
        return self.speedup_ci is not None and self.speedup_ci[1] < self.over

    @property
    def is_mended(self) -> bool:
        """Whether it is right and what it was made from was not."""
        return self.kind == "correct" and self.parent_kind not in (None, "correct")


def tried_of(
    evaluation: Evaluation,
    *,
    parent: str | None,
    expansion: int,
    strategy: str,
    parent_evaluation: Evaluation | None,
    signal: str = "",
) -> Tried:
    """Return what was tried.

    Args:
        evaluation: of the candidate.
        parent: that it was made from.
        expansion: in which it was written.
        strategy: as its author stated it.
        parent_evaluation: of the parent; None for a fresh candidate.
        signal: what the tools found first of the parent.
    """
    verdict = evaluation.verdict
    timing = verdict.timing if isinstance(verdict, Correct) else None
    before = None if parent_evaluation is None else parent_evaluation.verdict
    return Tried(
        candidate=evaluation.candidate,
        parent=parent,
        expansion=expansion,
        strategy=" ".join(strategy.split()),
        language=evaluation.language,
        kind=verdict.kind,
        reason=_line(verdict.reason),
        speedup=None if timing is None else timing.speedup,
        time_us=None if timing is None else timing.time_us,
        baseline_us=None if timing is None else timing.baseline_us,
        speedup_ci=None if timing is None else timing.speedup_ci,
        over=before.timing.speedup if isinstance(before, Correct) else 1.0,
        parent_kind=None if before is None else before.kind,
        parent_reason="" if before is None or isinstance(before, Correct) else _line(before.reason),
        signal=signal,
    )


def _line(text: str) -> str:
    line = " ".join(text[: 8 * MAX_REASON].split())
    return line if len(line) <= MAX_REASON else line[: MAX_REASON - 1] + "…"
