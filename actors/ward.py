"""The ward of the device lane: who may be lent, by what kopt.device_health knows of devices.

An actor that comes up says which device it owns. Where that one is in quarantine, or of another
kind than the fleet's (baselines and candidates are timed on one kind), the actor is not lent; it
stays, and so keeps the device from the next one that is started.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from typing import Any, Protocol

from kopt.actors.code_tree import code_tree
from kopt.device_health import DeviceFacts, HealthBook, Quarantine
from kopt.evaluation import Evaluation
from kopt.ports import Target
from kopt.verdict import Correct

_LOG = logging.getLogger(__name__)
ANSWERS_PER_VISIT = 200
"""Of a device, between two looks at its memory errors."""


class Ward(Protocol):
    """Says which workers of a lane are lent."""

    async def admit(self, number: int, actor: Any) -> bool:  # noqa: ANN401 - Ray types no handle
        """Return whether a worker may be lent whose actor has come up."""
        ...

    def answered(self, number: int, answer: object) -> bool:
        """Return whether a worker may still be lent that has answered."""
        ...

    def lost(self, number: int, why: str) -> None:
        """Hear that a worker's actor died or hung, and its node did not."""
        ...


class DeviceWard:
    """The ward of workers that own a device each."""

    def __init__(self, on_quarantine: Callable[[Quarantine], None]) -> None:
        """Begin with no device; `on_quarantine` hears once of each that is given up."""
        self._on_quarantine = on_quarantine
        self._book = HealthBook()
        self._devices: dict[int, str] = {}
        """Worker to its device, as it was when the actor came up."""
        self._told: set[str] = set()
        self._target: Target | None = None

    def meet(self, number: int, target: Target, facts: DeviceFacts) -> bool:
        """Take in what a worker owns; return whether it may be lent."""
        self._devices[number] = facts.device
        if self._target is None:
            self._target = target
        quarantine = self._book.met(facts)
        reason = self._unlike(target, facts)
        if quarantine is None and reason:
            quarantine = Quarantine(
                device=facts.device, host=facts.host, name=facts.name, reason=reason
            )
        return self._stands(quarantine)

    def _unlike(self, target: Target, facts: DeviceFacts) -> str:
        """Say what keeps a healthy device out of this fleet; empty where nothing does."""
        assert self._target is not None
        if target != self._target:
            return f"the fleet is timed on {self._target.name}, and on one kind of device"
        # On this host there is one tree, which may be edited while a run goes on.
        if facts.code and facts.host != platform.node() and facts.code != code_tree():
            return (
                f"its node runs another kopt ({facts.code}) than the driver ({code_tree()}); "
                "install one tree on all nodes"
            )
        return ""

    async def admit(self, number: int, actor: Any) -> bool:  # noqa: ANN401 - Ray types no handle
        """Ask an actor that came up what it owns."""
        target: Target = await actor.target.remote()
        facts: DeviceFacts = await actor.health.remote()
        return self.meet(number, target, facts)

    def answered(self, number: int, answer: object) -> bool:
        """Take an evaluation in; other answers say nothing of the device."""
        device = self._devices.get(number)
        if device is None:
            return True
        self._book.answered(device)
        if not isinstance(answer, Evaluation) or answer.device == "cpu":
            return True  # a CPU is shared with the whole host: its times drift by what others do
        verdict = answer.verdict
        if not isinstance(verdict, Correct):
            return True
        timing = verdict.timing
        program = f"{answer.problem} {timing.baseline}"
        return self._stands(self._book.timed(device, program=program, time_us=timing.baseline_us))

    def lost(self, number: int, why: str) -> None:
        """Take a loss in."""
        device = self._devices.get(number)
        if device is not None:
            self._stands(self._book.lost(device, why))

    def _stands(self, quarantine: Quarantine | None) -> bool:
        if quarantine is None:
            return True
        if quarantine.device not in self._told:
            self._told.add(quarantine.device)
            _LOG.warning("%s", quarantine)
            self._on_quarantine(quarantine)
        return False
