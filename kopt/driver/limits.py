"""Limits of a fleet: what may still be spent, and which limit ended it. Pure; time is passed in.

What a job spends is counted once, by itself, and goes up from there: to its arm, whose turns
depend on it (kopt.driver.turns), and to all that shares its limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from kopt.ports import Usage

LIMIT_PREFIX = "limits."
"""What the reason of an end by a limit begins with."""
FAILED_PREFIX = "failed: "
"""The same of an end by a failure."""


@dataclass(slots=True, kw_only=True)
class Spent:
    """What a run has spent so far, what it spent before a resume included."""

    tokens: int = 0
    """Read and written."""
    cost_usd: float = 0.0
    device_s: float = 0.0
    """Seconds of the devices, for verifying, timing and profiling; of the CPU where that is one."""
    candidates: int = 0
    """Asked for: those told and those in flight."""
    part_of: tuple[Spent, ...] = ()
    """What this is counted in as well."""

    def add(self, usage: Usage) -> None:
        """Take one completion in."""
        self._spend(tokens=usage.tokens_in + usage.tokens_out, cost_usd=usage.cost_usd)

    def used_device(self, seconds: float) -> None:
        """Take time of a device in."""
        self._spend(device_s=seconds)

    def asked(self, candidates: int) -> None:
        """Take candidates in that were asked for."""
        self._spend(candidates=candidates)

    def join(self, *wholes: Spent) -> None:
        """Be counted in others from now on, with all that was spent before."""
        for whole in wholes:
            whole._spend(
                tokens=self.tokens,
                cost_usd=self.cost_usd,
                device_s=self.device_s,
                candidates=self.candidates,
            )
        self.part_of = (*self.part_of, *wholes)

    def _spend(
        self,
        *,
        tokens: int = 0,
        cost_usd: float = 0.0,
        device_s: float = 0.0,
        candidates: int = 0,
    ) -> None:
        self.tokens += tokens
        self.cost_usd += cost_usd
        self.device_s += device_s
        self.candidates += candidates
        for whole in self.part_of:
            whole._spend(tokens=tokens, cost_usd=cost_usd, device_s=device_s, candidates=candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the whole fleet; None is no bound."""

    wall_s: float | None = None
    """Seconds since the fleet began (a resumed run begins anew)."""
    candidates: int | None = None
    """Candidates asked for in this run, those of before a resume included. An expansion is never
    cut, so the last one may go over by N - 1."""

    tokens: int | None = None
    """Read and written by models. What is in flight when it is reached is still paid for."""
    cost_usd: float | None = None
    """The same, in dollars at the configured prices."""
    gpu_s: float | None = None
    """Seconds of the devices, those of before a resume included; likewise."""

    def reached(self, *, elapsed_s: float, spent: Spent) -> str | None:
        """Return the limit that fired, in words for the journal, or None."""
        if self.wall_s is not None and elapsed_s >= self.wall_s:
            return f"limits.wall_s={self.wall_s:g}"
        if self.candidates is not None and spent.candidates >= self.candidates:
            return f"limits.candidates={self.candidates}"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"limits.tokens={self.tokens}"
        if self.cost_usd is not None and spent.cost_usd >= self.cost_usd:
            return f"limits.cost_usd={self.cost_usd:g}"
        if self.gpu_s is not None and spent.device_s >= self.gpu_s:
            return f"limits.gpu_s={self.gpu_s:g}"
        return None
