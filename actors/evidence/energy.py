"""Measuring energy on a GPU: windows of calls, alternating between candidate and baseline.

About two seconds a window, six pairs: half a minute of a device, for final winners alone. Clocks
are read and never set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kopt.energy_protocol import EnergyFigures, Window, energy_figures

WINDOW_S = 2.0
PAIRS = 6
IDLE_S = 3.0
WARM_S = 1.0
"""Of both arms together, before the first window: clocks rise, the device warms."""
CLOCK_EVERY_S = 0.2

MEASURE_S = WARM_S + IDLE_S + 2 * PAIRS * WINDOW_S * 1.5
"""Of a whole measurement, calls longer than expected included."""


class Counter(Protocol):
    """What is read of a device (`nvml.Meter`)."""

    def energy_mj(self) -> float:
        """Return the energy drawn so far, millijoules."""
        ...

    def clock_mhz(self) -> float:
        """Return the clock now, MHz."""
        ...


def measure_energy(
    candidate: Callable[[], object],
    *,
    baseline: Callable[[], object],
    wait: Callable[[], None],
    counter: Counter,
    pairs: int = PAIRS,
    window_s: float = WINDOW_S,
    idle_s: float = IDLE_S,
) -> EnergyFigures:
    """Return the energy of one call of each, without the idle draw.

    Args:
        candidate: launches one call.
        baseline: likewise.
        wait: until the device is done.
        counter: of the device that both run on.
        pairs: of windows, in the order A B B A.
        window_s: length of one, 1 or more: the counter is refreshed ten times a second.
        idle_s: for which the idle draw is read, with the context alive.

    Raises:
        ProfileFailed: the counter does not answer, or too few pairs had equal clocks.
    """
    arms = {"candidate": candidate, "baseline": baseline}
    for run in arms.values():
        _window("warm-up", run, wait=wait, counter=counter, seconds=WARM_S / 2)
    wait()
    idle_w = _idle_watts(counter, seconds=idle_s)
    order = ["candidate", "baseline", "baseline", "candidate"] * ((pairs + 1) // 2)
    windows = [
        _window(arm, arms[arm], wait=wait, counter=counter, seconds=window_s)
        for arm in order[: 2 * pairs]
    ]
    return energy_figures(windows, idle_w=idle_w)


def _idle_watts(counter: Counter, *, seconds: float) -> float:
    began_mj, began_s = counter.energy_mj(), time.perf_counter()
    time.sleep(seconds)
    return (counter.energy_mj() - began_mj) / 1e3 / (time.perf_counter() - began_s)


def _window(
    arm: str,
    run: Callable[[], object],
    *,
    wait: Callable[[], None],
    counter: Counter,
    seconds: float,
) -> Window:
    """Call again and again for a while, a queue of calls always ahead of the device."""
    run()
    wait()
    began_s = time.perf_counter()
    run()
    wait()
    each_s = max(time.perf_counter() - began_s, 1e-6)
    together = max(1, int(0.05 / each_s))
    clocks: list[float] = []
    calls, next_clock_s = 0, 0.0
    began_mj, began_s = counter.energy_mj(), time.perf_counter()
    while (passed_s := time.perf_counter() - began_s) < seconds:
        for _ in range(together):
            run()
        if passed_s >= next_clock_s:
            clocks.append(counter.clock_mhz())  # while the device works
            next_clock_s = passed_s + CLOCK_EVERY_S
        wait()
        calls += together
    passed_s = time.perf_counter() - began_s
    return Window(
        arm=arm,
        calls=calls,
        seconds=passed_s,
        energy_mj=counter.energy_mj() - began_mj,
        clock_mhz=sum(clocks) / len(clocks),
    )
