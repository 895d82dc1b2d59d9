"""Which candidates are profiled, and what that may cost. Pure; time is passed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kopt.evaluation import Evaluation
from kopt.ports import Telling

ProfileWhen = Literal["best", "correct", "expanded", "none"]
"""`correct`: each correct candidate, once it is told (KernelPro). `best`: each that is the fastest
of its search so far. `expanded`: each that is to be optimised, before its author is asked; authors
see the same as with `correct`, and what nobody reads is not profiled. `none`: none."""

EnergyMode = Literal["off", "measure", "aware"]
"""`measure`: each correct candidate is profiled for its energy, and the search does not know.
`aware`: so that energy is part of its reward (KernelPro Eq. 3) and authors are told."""

EnergyProxy = Literal["corrected", "paper"]
"""Which form of Eq. 4 the reward is of; see kopt.tools.energy_proxy."""

TOGETHER = 4
"""Profiles asked for at once on each device: a lane that takes several candidates in one run of
its profiler is given several."""
EVALUATED_STAGES = ("forked", "verified", "timed")
"""Of an evaluation's `timeline_s`: those that hold the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRule:
    """What is profiled, and what of it is told."""

    when: ProfileWhen = "none"
    energy: EnergyMode = "off"
    energy_proxy: EnergyProxy = "corrected"
    share: float | None = 0.5
    """Of the device's time that profiles may take, 0 to 1; None for no bound."""
    limit_s: float = 300.0
    """For one profile; one that hangs is given up then."""
    devices: int = 1
    """Of the profile lane, >= 1."""
    telling: Telling = field(default_factory=Telling)


class DeviceShare:
    """What profiles have taken of the device's time, against what they may."""

    def __init__(self, share: float | None) -> None:
        """Take the bound; None for none."""
        self._share = share
        self._evaluated_s = 0.0
        self._profiled_s = 0.0

    def evaluated(self, evaluation: Evaluation) -> None:
        """Take in what an evaluation took; nothing if it was known before."""
        timeline_s = evaluation.timeline_s
        self._evaluated_s += sum(timeline_s.get(stage, 0.0) for stage in EVALUATED_STAGES)

    def profiled(self, seconds: float) -> None:
        """Take in what a profile took."""
        self._profiled_s += seconds

    def has_room(self) -> bool:
        """Return whether another may be taken; one that goes over is paid back by the next."""
        if self._share is None:
            return True
        return self._profiled_s <= self._share * (self._profiled_s + self._evaluated_s)
