"""Whether a device is still to be trusted: evidence against it, and when that is enough.

Three kinds of evidence, one judgement. Losses: the process that judges on it is gone several times
in a row, each time with another candidate and without an answer in between (candidates run in
children of that process, so that a child's death is none). Memory errors: it counts more of those
that it could not correct than when it was met. A/A drift: the same programs take longer on it than
on the fleet's other devices; one alone is never given up for it. What is not to be trusted is lent
no more (quarantine).

Pure: no clock, no device.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from kopt.drift import DRIFT_SHARE

LOSSES_IN_A_ROW = 3
"""Of as many candidates: one or two are accidents."""
DRIFTED_PROGRAMS = 3
"""Programs that must be slower on one device than elsewhere: one may be odd."""
TIMES_KEPT = 5
"""Of one program on one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """What a worker says of the device that it owns."""

    device: str
    """What tells it from every other one: the GPU's UUID, or the host and the worker's number."""
    host: str
    name: str
    """The GPU's name, or the CPU's model."""
    worker: int = 0
    """Number of the worker in its lane."""
    code: str = ""
    """Which tree of kopt's code the worker runs; empty where it does not say."""
    memory_errors: int | None = None
    """ECC errors that could not be corrected, since the driver was loaded; None where the device
    does not count them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """A device that is lent no more, and on what evidence."""

    device: str
    host: str
    name: str
    reason: str
    """One line."""

    def __str__(self) -> str:
        return f"{self.name} ({self.device}) of {self.host} is in quarantine: {self.reason}"


@dataclass(slots=True, kw_only=True)
class _Record:
    facts: DeviceFacts
    losses: int = 0
    """In a row."""
    compared: set[str] = field(default_factory=set)
    """Programs that another device has timed too."""
    slow: dict[str, float] = field(default_factory=dict)
    """Of them, those that take longer here, and how many times as long."""
    quarantine: Quarantine | None = None


class HealthBook:
    """What is known of each device of a fleet."""

    def __init__(self) -> None:
        """Begin with no device."""
        self._records: dict[str, _Record] = {}
        self._times_us: dict[str, dict[str, list[float]]] = {}
        """By program and device, the last TIMES_KEPT."""

    def met(self, facts: DeviceFacts) -> Quarantine | None:
        """Take a device's own words in; return its quarantine, new or old, or None."""
        record = self._records.setdefault(facts.device, _Record(facts=facts))
        before, now = record.facts.memory_errors, facts.memory_errors
        if before is not None and now is not None and now > before:
            count = now - before
            self._give_up(record, f"{count} memory error(s) that it could not correct (ECC)")
        return record.quarantine

    def lost(self, device: str, why: str) -> Quarantine | None:
        """Take in that a device's worker was lost; return the quarantine that this leads to.

        Args:
            device: that it owned.
            why: in one line. The candidate's first loss: it may be at fault for a second.
        """
        record = self._records[device]
        record.losses += 1
        if record.losses >= LOSSES_IN_A_ROW and record.quarantine is None:
            text = f"its worker was lost {record.losses} times in a row, the last one {why}"
            return self._give_up(record, text)
        return None

    def answered(self, device: str) -> None:
        """Take in that a device's worker gave an answer."""
        self._records[device].losses = 0

    def timed(self, device: str, *, program: str, time_us: float) -> Quarantine | None:
        """Take in the time of a program that other devices time too (a reference, eager).

        Returns:
            The quarantine that this leads to: at least DRIFTED_PROGRAMS programs take longer, by
            more than DRIFT_SHARE, than the median of the other devices.

        Args:
            device: that it was timed on.
            program: which.
            time_us: above 0.
        """
        record = self._records[device]
        by_device = self._times_us.setdefault(program, {})
        times_us = by_device.setdefault(device, [])
        times_us.append(time_us)
        del times_us[:-TIMES_KEPT]
        elsewhere = [
            statistics.median(others_us)
            for other, others_us in by_device.items()
            if other != device and self._records[other].quarantine is None
        ]
        if record.quarantine is not None or not elsewhere:
            return None
        ratio = statistics.median(times_us) / statistics.median(elsewhere)
        record.compared.add(program)
        record.slow.pop(program, None)
        if ratio > 1.0 + DRIFT_SHARE:
            record.slow[program] = ratio
        # Most of what it runs, so that a device with thousands of problems is not given up for 3.
        num_slow = len(record.slow)
        if num_slow < DRIFTED_PROGRAMS or 2 * num_slow <= len(record.compared):
            return None
        return self._give_up(
            record,
            f"A/A drift: {num_slow} references take {statistics.median(record.slow.values()):.2f}x "
            "their time on other devices",
        )

    def quarantined(self) -> list[Quarantine]:
        """Return every quarantine, in the order in which the devices were met."""
        found = [record.quarantine for record in self._records.values()]
        return [each for each in found if each is not None]

    def _give_up(self, record: _Record, reason: str) -> Quarantine:
        facts = record.facts
        record.quarantine = record.quarantine or Quarantine(
            device=facts.device, host=facts.host, name=facts.name, reason=reason
        )
        return record.quarantine
