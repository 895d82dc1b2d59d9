"""A trial: what statistics know of one search. And the terms on which its speed-ups were measured.

Speed-ups of two trials compare where their terms are equal; nothing here mixes terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

OverSeeds = Literal["mean", "best"]
"""How a problem is scored by its searches: their geometric mean, or the best (KernelPro C.1)."""

UNSOLVED = 1.0
"""Score of a search without a correct candidate: the baseline is kept (KernelPro, table 7)."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Terms:
    """On what and by which rules speed-ups were measured."""

    ladder: str
    device: str
    baseline: str
    """What speed-ups are over: `eager`, `compile`, `the faster of eager and compile`, …"""
    protocol: str
    """Of timing: `abba`, `do_bench`, `kernelbench`."""
    module_mode: str
    """`train` or `eval`."""
    track: str
    """`anything` or `kernels`."""


class Lead(NamedTuple):
    """A change at the top of a search."""

    candidates: int
    """Verdicts of the search so far, this one included."""
    speedup: float
    """Of the candidate that leads from here on."""


class Turn(NamedTuple):
    """An expansion of a correct parent whose author answered."""

    tools: tuple[str, ...]
    """Tools with a finding about the parent, each once."""
    bottleneck: str | None
    """The parent's class by its roofline; None where it was not profiled."""
    gain: float | None
    """Speed-up of the turn's best correct candidate ÷ the parent's; None where none is correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """What a search's best candidate saves: reference ÷ candidate, above 1 is less energy."""

    measured: float | None
    """By millijoules of a call."""
    proxy: float | None
    """By the proxy of KernelPro Eq. 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One search."""

    run: str
    """Label of its run."""
    search: str
    problem: str
    """Problem id: equal for equal text, so that two revisions of a problem are two."""
    problem_name: str
    family: str = ""
    """Kind of computation; empty where the problem says none."""
    arm: str
    seed: int
    terms: Terms
    speedup: float | None
    """Of the best candidate by rank, above 0; None where none is correct."""
    leads: tuple[Lead, ...] = ()
    """How the best came about, in the journal's order; the last one's speed-up is `speedup`."""
    peak: float | None = None
    """Highest speed-up of any candidate; `speedup` is of the one that is surest."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """Kind of verdict to its number."""
    cached: int = 0
    """Verdicts that were known before; nothing was run for them."""
    outcome: str
    root_cause: str | None = None
    degenerate: bool = False
    ended: bool = True
    """False: it still runs, or was killed."""
    failure: str = ""
    """Why the machinery gave it up; empty where it did not."""
    turns: tuple[Turn, ...] = ()
    energy: Energy | None = None
    """None where no energy was recorded for its best candidate."""
    device_s: float = 0.0
    """Seconds of the device."""
    wall_s: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0

    @property
    def candidates(self) -> int:
        """Verdicts reached."""
        return sum(self.verdicts.values())

    def best_at(self, candidates: int) -> float | None:
        """Return the speed-up of what leads after so many verdicts; None where nothing is correct.

        A search that ended earlier keeps what it had.
        """
        reached = [lead.speedup for lead in self.leads if lead.candidates <= candidates]
        return reached[-1] if reached else None
