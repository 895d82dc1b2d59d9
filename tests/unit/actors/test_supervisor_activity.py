"""A child's record as untrusted input: its form, and whether it fits what the race found."""

from __future__ import annotations

import pytest

from kopt.activity import Activity, Ran
from kopt.actors.supervisor.activity import NoRecord, activity_from_json
from kopt.actors.supervisor.provenance import disbelieved
from kopt.timing import Timing


def timing(time_us: float, *, baseline_us: float = 100.0, eager_us: float = 100.0) -> Timing:
    return Timing(
        time_us=time_us,
        time_ci_us=(time_us, time_us),
        baseline="eager",
        baseline_us=baseline_us,
        speedup=baseline_us / time_us,
        speedup_ci=(1.0, 1.0),
        eager_us=eager_us,
        compile_us=None,
    )


def spanning(span_us: float, *, launches: int = 1) -> Activity:
    return Activity(ran=(Ran(name="k", launches=launches, time_us=span_us),), span_us=span_us)


def test_a_record_is_read_as_it_was_sent() -> None:
    answer = {"ran": [["rows", 2, 3.5]], "rest_us": 1, "own_us": 0.5, "span_us": 4.0}
    made = activity_from_json(answer)
    assert made.ran == (Ran(name="rows", launches=2, time_us=3.5),)
    assert made.total_us == 5.0
    assert made.span_us == 4.0


def test_names_are_shown_without_control_characters() -> None:
    made = activity_from_json({"ran": [["a\x1b[2J\nb", 1, 1.0]]})
    assert made.ran[0].name == "a?[2J?b"


@pytest.mark.parametrize(
    "answer",
    [
        {"ran": [["k", 1, float("nan")]]},
        {"ran": [["k", 1, float("inf")]]},
        {"ran": [["k", 1, -1.0]]},
        {"ran": [["k", 0, 1.0]]},
        {"ran": [["k" * 5_000, 1, 1.0]]},
        {"ran": [["k", 1, 1.0]] * 5_000},
        {"ran": [["k", 1]]},
        {"ran": "k"},
        {"ran": None},
        {"own_us": float("nan")},
        {"library_share": 1.0},
        {"why": "w" * 5_000},
    ],
)
def test_what_is_no_record_is_refused(answer) -> None:
    with pytest.raises(NoRecord, match="the record is no record"):
        activity_from_json(answer)


def test_a_child_may_say_that_it_has_none() -> None:
    with pytest.raises(NoRecord, match=r"^CUPTI is not here$"):
        activity_from_json({"why": "something\nCUPTI is not here"})


@pytest.mark.parametrize(
    ("span_us", "time_us", "fits"),
    [
        (100.0, 100.0, True),
        (1.2, 5.0, True),  # the events of a short call take longer than it does
        (100.0, 429.0, True),  # 4 * 100 + 20 + 10 for its one launch
        (100.0, 431.0, False),
        (419.0, 100.0, True),  # 4 * 100 + 20
        (421.0, 100.0, False),
        (0.0, 1_000.0, False),
    ],
)
def test_a_gpus_record_is_held_against_the_time(span_us, time_us, fits) -> None:
    why = disbelieved(spanning(span_us), timing=timing(time_us), reference=None, device="cuda")
    assert (why is None) == fits, why


def test_a_gpu_may_wait_for_the_host_at_each_launch() -> None:
    # 300 kernels of 2 us, launched every 8 us: 600 us of kernels in 2,400 us and a little more.
    record = spanning(600.0, launches=300)
    assert disbelieved(record, timing=timing(2_500.0), reference=None, device="cuda") is None


@pytest.mark.parametrize(
    ("span_us", "fits"),
    [(370.0, False), (390.0, True), (4_000.0, True), (40_100.0, True), (40_300.0, False)],
)
def test_a_cpus_record_is_held_against_the_references(span_us, fits) -> None:
    # In the race, on a busy host, the candidate took 80 ms and the reference 20 ms. The reference's
    # record took 1 ms, so 4 ms are expected: 10 * span + 200 us from below, 40 ms + 200 us from
    # above.
    found = timing(80_000.0, baseline_us=20_000.0)
    why = disbelieved(spanning(span_us), timing=found, reference=spanning(1_000.0), device="cpu")
    assert (why is None) == fits, why


def test_nothing_is_expected_of_a_cpu_without_the_references_record() -> None:
    assert disbelieved(spanning(1.0), timing=timing(1e6), reference=None, device="cpu") is None
