"""Kept times against what a device takes now, and the baselines that are worth a process."""

from __future__ import annotations

import pytest

from kopt.contenders import contenders, rivals
from kopt.drift import has_drifted, is_calm

CALM = [100.0, 101.0, 99.0, 100.0, 100.5]


def test_times_that_lie_close_together_are_calm() -> None:
    assert is_calm(CALM)
    assert is_calm([*CALM, 900.0])  # one preempted block
    assert not is_calm([80.0, 120.0, 90.0, 110.0, 100.0])


def test_three_times_say_nothing_of_calm() -> None:
    assert not is_calm([100.0, 100.0, 100.0])


def test_a_calm_device_that_takes_another_time_has_drifted() -> None:
    assert has_drifted(CALM, known_us=112.0)
    assert has_drifted(CALM, known_us=90.0)


def test_ten_per_cent_are_no_drift() -> None:
    assert not has_drifted(CALM, known_us=91.0)
    assert not has_drifted(CALM, known_us=111.0)


def test_a_restless_device_is_believed_only_where_it_takes_less() -> None:
    restless = [80.0, 120.0, 90.0, 110.0, 100.0]
    assert not has_drifted(restless, known_us=10.0)
    assert not has_drifted(restless, known_us=110.0)
    assert has_drifted(restless, known_us=120.0)


def test_what_was_never_measured_gets_a_process() -> None:
    assert contenders(["compile", "max_autotune"], known_us={}, baseline="best") == [
        "compile",
        "max_autotune",
    ]
    known = {"eager": 10.0, "compile": 50.0}
    assert contenders(["compile", "max_autotune"], known_us=known, baseline="best") == [
        "max_autotune"
    ]


@pytest.mark.parametrize(("compile_us", "is_made"), [(200.0, False), (111.0, False), (109.0, True)])
def test_compiling_what_cannot_win_is_left_out(compile_us, is_made) -> None:
    known = {"eager": 100.0, "compile": compile_us}
    made = contenders(["compile"], known_us=known, baseline="best")
    assert made == (["compile"] if is_made else [])


def test_the_baseline_that_is_named_gets_a_process_and_no_other() -> None:
    known = {"eager": 1.0, "compile": 50.0}
    assert contenders(["compile"], known_us=known, baseline="compile") == ["compile"]
    quick = {"eager": 50.0, "compile": 1.0}
    assert contenders(["compile"], known_us=quick, baseline="eager") == []


def test_max_autotune_is_reported_and_never_raced() -> None:
    known = {"eager": 100.0, "compile": 90.0, "max_autotune": 1.0}
    made = contenders(["compile", "max_autotune"], known_us=known, baseline="best")
    assert made == ["compile"]


def test_a_given_kernel_is_raced_where_it_is_named_and_alone() -> None:
    known = {"eager": 100.0, "compile": 90.0, "given": 1.0}
    wanted = ["compile", "given"]
    assert contenders(wanted, known_us=known, baseline="best") == ["compile"]
    assert contenders(wanted, known_us=known, baseline="given") == ["given"]
    assert contenders(wanted, known_us={}, baseline="given") == wanted


@pytest.mark.parametrize(
    ("seen_us", "found"),
    [
        ({"eager": (10.0, 12.0), "compile": (13.0, 15.0)}, []),
        ({"eager": (10.0, 14.0), "compile": (13.0, 15.0)}, ["compile"]),
        ({"eager": (10.0, 14.0), "max_autotune": (11.0, 15.0)}, []),  # reported, never raced
        ({"eager": (10.0, 14.0), "given": (11.0, 15.0)}, []),
        ({"eager": (10.0, 14.0)}, []),
    ],
)
def test_a_baseline_that_once_took_no_longer_than_the_best_may_be_the_best(seen_us, found) -> None:
    assert rivals("eager", seen_us=seen_us) == found
