"""What is ended beside the work: nobody waits for it but timing, and all of it is in a timeline."""

from __future__ import annotations

import threading

from kopt.actors.supervisor.endings import Endings
from kopt.actors.supervisor.turns import Turns

SOON_S = 10.0


def test_one_at_a_time_ends_at_once() -> None:
    done: list[str] = []
    endings = Endings(Turns(), in_flight=1)
    endings.begin(lambda: done.append("child"))
    endings.begin_shared(lambda: done.append("session"))
    assert done == ["child", "session"]
    endings.close()


def test_one_that_hangs_keeps_neither_its_beginner_nor_another_waiting() -> None:
    endings = Endings(Turns(), in_flight=2)
    may_end, other_ended = threading.Event(), threading.Event()
    endings.begin(lambda: may_end.wait(SOON_S) and None)
    endings.begin(other_ended.set)
    assert other_ended.wait(SOON_S)
    may_end.set()
    endings.settle()
    endings.close()


def test_timing_waits_for_a_session_that_is_being_closed() -> None:
    turns = Turns()
    endings = Endings(turns, in_flight=2)
    closing, may_end = threading.Event(), threading.Event()
    log: list[str] = []

    def close() -> None:
        closing.set()
        assert may_end.wait(SOON_S)
        log.append("closed")

    def time_it() -> None:
        with turns.exclusive():
            log.append("timed")

    endings.begin_shared(close)
    assert closing.wait(SOON_S)
    timing = threading.Thread(target=time_it)
    timing.start()
    may_end.set()
    timing.join(SOON_S)
    endings.close()
    assert log == ["closed", "timed"]
