"""Sessions kept ready: opened once, never closed under a user, the oldest idle one goes first."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from kopt.actors.supervisor.sessions import Sessions
from kopt.errors import ProblemError
from kopt.problem import Problem

SOON_S = 10.0


class Opened:
    def __init__(self, problem: Problem, log: list[str]) -> None:
        self.name, self.log = problem.name, log
        self.log.append(f"+{self.name}")

    def close(self) -> None:
        self.log.append(f"-{self.name}")


open_sessions = partial(Sessions, is_short=lambda: False)


def problem(name: str) -> Problem:
    return Problem(name=name, source=f"# {name}")


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def sessions(log) -> Sessions:
    return open_sessions(lambda each: Opened(each, log), keep=2)


def use(sessions: Sessions, name: str, *, generation: int = 0) -> None:
    with sessions.use(problem(name), generation=generation):
        pass


def test_a_session_is_opened_once_and_the_one_used_longest_ago_goes(sessions, log) -> None:
    for name in ("a", "b", "a", "c", "a"):
        use(sessions, name)
    assert log == ["+a", "+b", "-b", "+c"]


def test_a_session_in_use_is_not_closed_however_many_there_are(sessions, log) -> None:
    with sessions.use(problem("a"), generation=0):
        for name in ("b", "c", "d"):
            use(sessions, name)
        assert "-a" not in log
    sessions.close_idle()
    assert sorted(each for each in log if each.startswith("-")) == ["-a", "-b", "-c", "-d"]


def test_who_wants_a_session_that_is_being_opened_waits_for_that_one(log) -> None:
    opening, may_open = threading.Event(), threading.Event()

    def open_slowly(each: Problem) -> Opened:
        opening.set()
        assert may_open.wait(SOON_S)
        return Opened(each, log)

    sessions = open_sessions(open_slowly, keep=2)
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(use, sessions, "a") for _ in range(2)]
        assert opening.wait(SOON_S)
        may_open.set()
        for each in both:
            each.result(SOON_S)
    assert log == ["+a"]


def test_a_session_whose_children_died_with_their_zygote_is_opened_anew(sessions, log) -> None:
    use(sessions, "a")
    use(sessions, "a", generation=1)
    assert log == ["+a", "-a", "+a"]


def test_one_that_is_forgotten_while_in_use_is_closed_by_its_last_user(sessions, log) -> None:
    with sessions.use(problem("a"), generation=0):
        sessions.forget(problem("a"))
        use(sessions, "a")
        assert log == ["+a", "+a"]
    assert log == ["+a", "+a", "-a"]


def test_a_session_that_cannot_be_opened_is_tried_by_the_next(log) -> None:
    faults = [ProblemError("a", "the reference fails"), None]

    def open_or_fail(each: Problem) -> Opened:
        fault = faults.pop(0)
        if fault is not None:
            raise fault
        return Opened(each, log)

    sessions = open_sessions(open_or_fail, keep=2)
    with pytest.raises(ProblemError):
        use(sessions, "a")
    use(sessions, "a")
    assert log == ["+a"]


def test_a_problem_that_finds_no_memory_gets_that_of_idle_ones(log) -> None:

    def open_if_there_is_room(each: Problem) -> Opened:
        if each.name == "b" and "-a" not in log:
            raise ProblemError("b", "it does not fit into memory")
        return Opened(each, log)

    sessions = open_sessions(open_if_there_is_room, keep=2)
    use(sessions, "a")
    use(sessions, "b")
    assert log == ["+a", "-a", "+b"]


def test_where_memory_is_short_one_session_is_kept_and_there_is_room_for_no_other(log) -> None:
    short = []
    sessions = open_sessions(lambda each: Opened(each, log), keep=2, is_short=lambda: bool(short))
    use(sessions, "a")
    assert sessions.has_room
    short.append(True)
    assert not sessions.has_room
    use(sessions, "b")
    assert log == ["+a", "-a", "+b"]


def test_a_device_that_cannot_be_asked_holds_up_nobody(log) -> None:
    lost = [True]

    def is_short() -> bool:
        if lost:
            raise RuntimeError("the device is gone")
        return False

    sessions = Sessions(lambda each: Opened(each, log), keep=2, is_short=is_short)
    with pytest.raises(RuntimeError, match="gone"):
        use(sessions, "a")
    lost.clear()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(use, sessions, "a").result(timeout=SOON_S)
    assert log == ["+a"]


def test_who_used_a_session_last_does_not_wait_for_its_end(log) -> None:
    closes = []
    sessions = open_sessions(lambda each: Opened(each, log), keep=1, beside=closes.append)
    use(sessions, "a")
    use(sessions, "b")
    assert log == ["+a", "+b"]
    assert len(closes) == 1
    closes[0]()
    assert log == ["+a", "+b", "-a"]


def test_memory_that_is_wanted_at_once_is_waited_for(log) -> None:
    threads = []

    def beside(close) -> None:
        threads.append(threading.Thread(target=close))

    def open_if_there_is_room(each: Problem) -> Opened:
        if each.name == "b" and "-a" not in log:
            threads[0].start()
            raise ProblemError("b", "it does not fit into memory")
        return Opened(each, log)

    sessions = open_sessions(open_if_there_is_room, keep=1, beside=beside)
    use(sessions, "a")
    sessions.forget(problem("a"))  # its end is handed over, and has yet to begin
    use(sessions, "b")
    assert log == ["+a", "-a", "+b"]


def test_there_is_room_until_as_many_are_kept_as_may_be(sessions) -> None:
    assert sessions.has_room
    use(sessions, "a")
    assert sessions.has_room
    use(sessions, "b")
    assert not sessions.has_room
