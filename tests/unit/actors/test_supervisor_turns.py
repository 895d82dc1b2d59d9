"""Turns on a device: nothing is timed beside anything else, and nobody who hangs is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from kopt.actors.supervisor.turns import Hold, Turns

SOON_S = 10.0


class Child:
    """Stands for a process: it knows whether it is stopped, and whether it was killed."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.is_killed = False

    def kill(self) -> None:
        self.is_killed = True


@contextmanager
def stop(child: Child) -> Iterator[None]:
    child.is_stopped = True
    yield
    child.is_stopped = False


@pytest.fixture
def turns() -> Turns:
    return Turns(stop=stop, patience_s=0.05)


@pytest.fixture
def beside() -> Iterator[Callable]:
    """Returns a function that runs something on a thread of its own."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


def holding(turns: Turns, child: Child, *, until: threading.Event, asks: bool) -> Callable:
    """A candidate's thread: it takes a turn and keeps it, waiting for its child or working."""
    taken = threading.Event()

    def run() -> None:
        hold = turns.take()
        turns.give(hold, child)
        try:
            if asks:
                with turns.waiting(child):
                    taken.set()
                    until.wait(SOON_S)
            else:
                taken.set()
                until.wait(SOON_S)
        finally:
            turns.give_back(hold)

    return run, taken


def test_a_candidate_that_hangs_is_stopped_while_another_is_timed(turns, beside) -> None:
    child, ends = Child(), threading.Event()
    run, taken = holding(turns, child, until=ends, asks=True)
    done = beside(run)
    assert taken.wait(SOON_S)
    with turns.exclusive() as stopped:
        assert child.is_stopped
        assert [hold.child for hold in stopped.suspects] == [child]
    assert not child.is_stopped
    ends.set()
    done.result(SOON_S)


def test_who_works_for_a_candidate_is_waited_for_and_not_stopped(turns, beside) -> None:
    child, ends = Child(), threading.Event()
    run, taken = holding(turns, child, until=ends, asks=False)
    beside(run)
    assert taken.wait(SOON_S)
    timed = threading.Event()

    def time_it() -> list[Hold]:
        with turns.exclusive() as stopped:
            timed.set()
            return stopped.holds

    timing = beside(time_it)
    assert not timed.wait(0.3)  # well beyond the patience
    ends.set()
    assert timing.result(SOON_S) == []


def test_a_thread_whose_child_answered_while_it_was_stopped_waits_for_the_end(
    turns, beside
) -> None:
    child, ends, worked = Child(), threading.Event(), threading.Event()

    def run() -> None:
        hold = turns.take()
        turns.give(hold, child)
        with turns.waiting(child):
            taken.set()
            ends.wait(SOON_S)
        worked.set()
        turns.give_back(hold)

    taken = threading.Event()
    done = beside(run)
    assert taken.wait(SOON_S)
    with turns.exclusive():
        ends.set()
        assert not worked.wait(0.2)
    done.result(SOON_S)
    assert worked.is_set()


def test_who_wants_the_device_alone_goes_before_who_wants_to_share_it(turns, beside) -> None:
    order: list[str] = []
    asked = threading.Event()

    def time_it() -> None:
        with turns.exclusive():
            order.append("timed")

    def share() -> None:
        with turns.shared():
            order.append("shared")

    with turns.shared():
        timing = beside(time_it)
        while not turns._queue:
            asked.wait(0.01)
        sharing = beside(share)
    timing.result(SOON_S)
    sharing.result(SOON_S)
    assert order == ["timed", "shared"]


def test_a_candidate_at_rest_is_stopped_at_once_but_not_for_its_own_turn(turns) -> None:
    patient = Turns(stop=stop, patience_s=600.0)
    mine, other = Child(), Child()
    holds = []
    for child in (mine, other):
        holds.append(patient.take())
        patient.give(holds[-1], child)
        patient.rest(holds[-1])
    with patient.exclusive(holds[0]) as stopped:
        assert (mine.is_stopped, other.is_stopped) == (False, True)
        assert stopped.suspects == [holds[1]]


def test_what_compiles_is_stopped_and_no_suspect_and_goes_on_for_who_needs_it(turns) -> None:
    patient = Turns(stop=stop, patience_s=600.0)
    child = Child()
    hold = patient.lend(child, is_trusted=True)
    with patient.exclusive() as stopped:
        assert child.is_stopped
        assert stopped.suspects == []
        patient.go_on(hold)
        assert not child.is_stopped
    patient.give_back(hold)
    with patient.exclusive() as stopped:
        assert stopped.holds == []


def test_a_child_that_is_being_ended_is_waited_for(turns, beside) -> None:
    child, began = Child(), threading.Event()
    hold = turns.take()
    turns.give(hold, child)
    turns.must_end(hold)

    def time_it() -> bool:
        with turns.exclusive():
            began.set()
            return child.is_stopped

    timing = beside(time_it)
    assert not began.wait(0.3)
    turns.give_back(hold)
    assert timing.result(SOON_S) is False


def test_a_suspect_that_is_evicted_is_killed_and_marked(turns, beside) -> None:
    child = Child()
    hold = turns.take()
    turns.give(hold, child)
    turns.rest(hold)
    with turns.exclusive() as stopped:
        turns.evict(stopped.suspects[0])
    assert child.is_killed
    assert hold.is_evicted


def test_something_long_lets_timing_go_between_its_steps(turns, beside) -> None:
    order: list[str] = []
    waits = threading.Event()

    def time_it() -> None:
        with turns.exclusive():
            order.append("timed")

    with turns.shared(breathes=True):
        order.append("step")
        timing = beside(time_it)
        while not turns._queue:
            waits.wait(0.01)
        turns.breathe()
        order.append("step")
    timing.result(SOON_S)
    assert order == ["step", "timed", "step"]


def test_a_turn_within_a_turn_is_the_same_turn(turns) -> None:
    with turns.shared(), turns.shared():
        assert len(turns._holds) == 1
    with turns.exclusive(), turns.shared(), turns.exclusive():
        pass
    assert not turns._holds
    assert turns._owner is None


def test_the_device_is_busy_while_anybody_has_a_turn(turns) -> None:
    assert turns.busy_s() == 0.0
    with turns.shared():
        assert turns.busy_s() > 0.0
    after_s = turns.busy_s()
    assert turns.busy_s() == after_s
