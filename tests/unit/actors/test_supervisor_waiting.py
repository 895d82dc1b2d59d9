"""What a child waited for a processor: by hand, and as this kernel counts it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.supervisor.waiting import free_share, threads_waited_ns

COUNTED = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/schedstat")
CROWDED = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
until_s = time.monotonic() + 0.4
while time.monotonic() < until_s:
    pass
print(1, flush=True)
input()
"""


@dataclass
class Started:
    """A process as a stopwatch holds it."""

    pid: int
    is_guarded: bool = False


def test_who_waited_half_of_the_time_had_half_of_it_free() -> None:
    assert free_share({7: 1_000_000}, {7: 1_500_000}, wall_us=1_000.0) == pytest.approx(0.5)


def test_threads_that_wait_each_by_itself_leave_what_all_had_free() -> None:
    waited = free_share({7: 0, 8: 0}, {7: 500_000, 8: 250_000}, wall_us=1_000.0)
    assert waited == pytest.approx(0.5 * 0.75)


def test_a_new_thread_counts_and_one_that_ended_does_not() -> None:
    assert free_share({7: 900_000}, {9: 100_000}, wall_us=1_000.0) == pytest.approx(0.9)


def test_a_share_is_never_none_and_where_nothing_is_counted_all_is_free() -> None:
    assert free_share({7: 0}, {7: 10_000_000}, wall_us=1_000.0) == pytest.approx(0.01)
    assert free_share({7: 500}, {7: 0}, wall_us=1_000.0) == 1.0
    assert free_share({}, {}, wall_us=1_000.0) == 1.0


@pytest.mark.skipif(not COUNTED.exists(), reason="this kernel does not count what threads wait")
def test_threads_of_a_child_and_of_what_it_started_are_all_found() -> None:
    waited = threads_waited_ns(Started(os.getpid()))  # type: ignore[arg-type]
    assert threading.get_native_id() in waited
    assert all(each >= 0 for each in waited.values())


@pytest.mark.skipif(not COUNTED.exists(), reason="this kernel does not count what threads wait")
def test_two_that_crowd_one_processor_have_waited_for_it() -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", CROWDED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    try:
        for process in both:
            assert process.stdout is not None
            process.stdout.readline()
        waited_ns = sum(sum(threads_waited_ns(Started(each.pid)).values()) for each in both)  # type: ignore[arg-type]
        assert waited_ns > 50_000_000
    finally:
        for process in both:
            process.communicate(b"\n", timeout=20)
