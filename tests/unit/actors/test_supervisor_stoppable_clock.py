"""Deadlines by a clock that stands still while a child is stopped."""

from __future__ import annotations

import time

import pytest

from kopt.actors.supervisor.stoppable_clock import StoppableClock


def never(for_s: float) -> bool:
    time.sleep(min(for_s, 0.01))
    return False


def test_what_is_not_so_in_time_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        StoppableClock().wait(never, timeout_s=0.05)


@pytest.mark.parametrize("timeout_s", [0.0, 5.0])
def test_what_is_so_is_asked_for_once_and_for_as_long_as_there_is_time(timeout_s) -> None:
    asked: list[float] = []

    def at_once(for_s: float) -> bool:
        asked.append(for_s)
        return True

    StoppableClock().wait(at_once, timeout_s=timeout_s)
    assert asked == [timeout_s]


def test_time_that_it_was_stopped_does_not_count() -> None:
    clock = StoppableClock()
    stopped = clock.stopped()
    looks = 0

    def go_on_later(for_s: float) -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            stopped.__enter__()
            time.sleep(0.3)
        if looks == 2:
            stopped.__exit__(None, None, None)
        return looks == 3

    clock.wait(go_on_later, timeout_s=0.2)
    assert looks == 3
