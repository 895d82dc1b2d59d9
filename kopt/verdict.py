"""What became of a candidate: a closed union, each case with just its fields.

A verdict is data, never an exception: a kernel that does not compile is an ordinary result of a
search. Exceptions are kept for the machinery itself (errors.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from kopt.error_line import error_line
from kopt.timing import Timing

VerdictKind = Literal["correct", "incorrect", "cheated", "compile_failed", "crashed", "timed_out"]
VERDICT_KINDS: tuple[VerdictKind, ...] = get_args(VerdictKind)

LOG_BYTES = 8_192
"""Most that a verdict keeps of a compiler's or interpreter's words: the last ones count."""


def bounded_log(text: str, *, max_bytes: int = LOG_BYTES) -> str:
    """Return the end of a log, at most max_bytes of UTF-8, saying so where it was cut."""
    data = text.encode("utf-8", errors="replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    mark = "… (cut) …\n"
    return mark + data[-(max_bytes - len(mark.encode())) :].decode("utf-8", errors="ignore")


def last_line(text: str) -> str:
    """Return the last line that says something, at most 300 characters; empty for an empty log."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericError:
    """How far an output is from the float64 reference, worst over all checked input sets."""

    max_abs: float
    """Largest |out - ref64|, in the output's own units; may be inf or nan."""
    rel_norm: float
    """Largest ‖out - ref64‖₂ / ‖ref64‖₂."""
    rho: float | None
    """Largest d_candidate / d_reference, d = max |· - ref64| (KernelOPT App. B); None where the
    reference's own error is below 1e-8, the degenerate case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileFailed:
    """The candidate never became a callable: it does not parse, build, import or construct."""

    kind: ClassVar[VerdictKind] = "compile_failed"
    stage: str
    """`static`, `build`, `import` or `construct`."""
    log: str
    """The compiler's or interpreter's own words, bounded by LOG_BYTES."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        return f"{self.stage}: {error_line(self.log)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The candidate raised, or its process died, while it ran."""

    kind: ClassVar[VerdictKind] = "crashed"
    stage: str
    """Where: `correctness`, `timing`, …."""
    log: str
    """The exception with its last lines, or the signal that ended the process."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        return f"{self.stage}: {error_line(self.log)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The candidate did not end a stage in time; its whole process group was killed."""

    kind: ClassVar[VerdictKind] = "timed_out"
    stage: str
    """Where: `build`, `import`, `correctness`, `timing`, …."""
    limit_s: float
    """The deadline of that stage, in seconds."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        return f"{self.stage}: no end within {self.limit_s:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incorrect:
    """The candidate ran, and what it computed is not the reference's function."""

    kind: ClassVar[VerdictKind] = "incorrect"
    check: str
    """Name of the check that failed, such as `values:signed_normal`."""
    detail: str
    """What was expected and what was found, in one line."""
    error: NumericError | None = None
    """Where values were compared."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        return f"{self.check}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheated:
    """The candidate tried to be counted without doing the work."""

    kind: ClassVar[VerdictKind] = "cheated"
    check: str
    """Name of the check that caught it, such as `two_clocks`."""
    detail: str
    """The evidence, in one line."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        return f"{self.check}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correct:
    """The candidate computed the reference's function on every check, and was timed."""

    kind: ClassVar[VerdictKind] = "correct"
    timing: Timing
    error: NumericError
    energy_reduction: float | None = None
    """Reference's energy ÷ candidate's, by the counters' proxy; None where energy does not count
    or is not known. No part of the evaluation: the `told` event keeps it."""

    @property
    def reason(self) -> str:
        """One line for a person or a model."""
        t = self.timing
        low, high = t.speedup_ci
        return (
            f"{t.speedup:.3g}x [{low:.3g}, {high:.3g}] over {t.baseline}: "
            f"{t.time_us:.4g} us against {t.baseline_us:.4g} us"
        )


Verdict = CompileFailed | Crashed | TimedOut | Incorrect | Cheated | Correct
