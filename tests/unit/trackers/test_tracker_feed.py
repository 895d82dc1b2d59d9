"""A tracker is a help: whatever it does, the run goes on, and the user is told once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kopt.driver.tracked_scalars import TrackedScalars
from kopt.driver.tracker_feed import TrackerFeed
from kopt.evaluation import to_json
from kopt.events import EvidenceTaken, SearchEnded, Told, VerdictReached
from kopt.problem import Problem
from kopt.testing.fakes import correct, evaluation_of, source_candidate
from kopt.testing.sample_journal import sample_events, started
from kopt.tracker import Tracker
from kopt.verdict import Crashed, Verdict

PROBLEM = Problem(name="mine/a b", source="class Model: ...\n")
SEARCH = "s"


class Kept:
    """A tracker that keeps what it is told, and does something of its own each time."""

    def __init__(self, also: Callable[[], object] = lambda: None) -> None:
        self.points: list[tuple[int, dict[str, float]]] = []
        self.closed = 0
        self._also = also

    def log(self, values: Mapping[str, float], *, step: int) -> None:
        self._also()
        self.points.append((step, dict(values)))

    def close(self) -> None:
        self.closed += 1


def judged(verdict: Verdict, *, cached: bool = False, device_s: float = 0.0) -> VerdictReached:
    candidate = source_candidate("class ModelNew: ...\n")
    record: Any = to_json(evaluation_of(verdict, problem=PROBLEM, candidate=candidate))
    record["timeline_s"] = {"built": 100.0, "verified": device_s / 2, "timed": device_s / 2}
    return VerdictReached(
        candidate=candidate.candidate_id, expansion=0, index=0, cached=cached, eval=record
    )


def told() -> Told:
    return Told(expansion=0, index=0, node=1, reward=0.0)


def run_with(tracker: Callable[[], Tracker], **options: Any) -> list[str]:
    """Feed a tracker two candidates, and return what the user was told."""
    lines: list[str] = []
    with TrackerFeed(tracker, kind="it", warn=lines.append, every_s=0.0, **options) as feed:
        feed.observe(SEARCH, started(PROBLEM, arm="a", seed=0))
        for _ in range(2):
            feed.observe(SEARCH, told())
    return lines


def test_the_numbers_are_those_of_the_events() -> None:
    scalars = TrackedScalars()
    crashed = Crashed(stage="timing", log="")
    for event in (
        started(PROBLEM, arm="a", seed=0),
        judged(correct(2.0), device_s=3.0),
        told(),
        judged(crashed, device_s=4.0),
        told(),
        judged(correct(1.5), cached=True, device_s=99.0),
        told(),
        EvidenceTaken(
            candidate="c",
            expansion=0,
            index=0,
            ref=None,
            level=None,
            reason="",
            cached=False,
            profiled_s=1.0,
        ),
        SearchEnded(reason="budget", failed=False),
    ):
        scalars.observe(SEARCH, event)
    assert scalars.step == 3
    assert scalars.values() == {
        "candidates": 3.0,
        "correct": 2.0,
        "gpu_s": 8.0,
        "tokens": 0.0,
        "cost_usd": 0.0,
        "searches_ended": 1.0,
        "verdicts/correct": 2.0,
        "verdicts/crashed": 1.0,
        "best_speedup/mine-a-b": 2.0,
        "candidates_per_gpu_hour": 900.0,  # 2 that were run in 8 s
    }


def test_every_kind_of_event_can_be_told_and_models_are_counted() -> None:
    scalars = TrackedScalars()
    for event in sample_events():
        scalars.observe(SEARCH, event)
    assert scalars.values()["tokens"] > 0
    assert scalars.values()["cost_usd"] > 0


def test_the_last_point_has_everything_and_the_tracker_is_closed_once() -> None:
    tracker = Kept()
    assert run_with(lambda: tracker) == []
    step, values = tracker.points[-1]
    assert (step, values["candidates"]) == (2, 2.0)
    assert tracker.closed == 1


def test_a_resumed_run_goes_on_from_what_its_journal_has() -> None:
    tracker = Kept()
    run_with(lambda: tracker, earlier=[(SEARCH, told())] * 5)
    assert tracker.points[-1][0] == 7


def test_points_are_no_nearer_than_asked_for() -> None:
    tracker = Kept()
    with TrackerFeed(lambda: tracker, kind="it", warn=print, every_s=3600.0) as feed:
        for _ in range(100):
            feed.observe(SEARCH, told())
    assert len(tracker.points) <= 2
    assert tracker.points[-1][0] == 100


def fails(error: Exception) -> Callable[[], Any]:
    def raise_it() -> Any:
        raise error

    return raise_it


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("a\nb"), ConnectionError("down")]
)
def test_one_that_raises_is_named_in_one_line_once(error: Exception) -> None:
    for lines in (run_with(fails(error)), run_with(lambda: Kept(fails(error)))):
        (line,) = lines
        assert line.startswith(f"tracker=it: {type(error).__name__}: ")
        assert line.endswith("; the run goes on without it")
        assert "\n" not in line


def test_one_that_fails_to_close_is_named_too() -> None:
    class Unclosable(Kept):
        def close(self) -> None:
            raise OSError(28, "No space left on device")

    (line,) = run_with(Unclosable)
    assert "No space left on device" in line


def test_one_that_hangs_is_left_behind() -> None:
    forever = threading.Event()
    try:
        for opened in (lambda: forever.wait() or Kept(), lambda: Kept(forever.wait)):
            lines = run_with(opened, patience_s=0.05)
            assert lines == ["tracker=it: does not answer for 0.05 s; the run goes on without it"]
    finally:
        forever.set()


def test_what_waits_for_one_that_hangs_is_bounded() -> None:
    forever = threading.Event()
    lines: list[str] = []
    try:
        with TrackerFeed(
            lambda: forever.wait() or Kept(), kind="it", warn=lines.append, most_waiting=3
        ) as feed:
            for _ in range(10):
                feed.observe(SEARCH, told())
        assert lines == [
            "tracker=it: does not answer: 3 events wait for it; the run goes on without it"
        ]
    finally:
        forever.set()
