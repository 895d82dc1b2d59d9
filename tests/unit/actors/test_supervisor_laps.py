"""Laps: where a candidate's seconds went."""

from __future__ import annotations

import time

import pytest

from kopt.actors.supervisor.laps import Laps


@pytest.fixture
def at(monkeypatch):
    """Returns a function that sets the clock."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def set_clock(seconds: float) -> None:
        now[0] = seconds

    return set_clock


def test_laps_add_up_to_all_the_time_that_went_by(at) -> None:
    laps = Laps()
    for seconds, name in ((1.5, "forked"), (4.0, "verified"), (4.5, "forked")):
        at(seconds)
        laps.lap(name)
    assert laps.laps == {"forked": 2.0, "verified": 2.5}


def test_a_try_that_was_for_nothing_is_one_lap(at) -> None:
    laps = Laps()
    at(1.0)
    laps.lap("forked")
    at(3.0)
    laps.void("disturbed")
    at(4.0)
    laps.lap("forked")
    assert laps.laps == {"disturbed": 3.0, "forked": 1.0}
