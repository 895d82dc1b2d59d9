"""What the A/A study counts and shows, and how it shares its time out."""

from __future__ import annotations

import math

import pytest
from aa_study import settings_of
from aa_study_counts import Rate, Series, lines_of, text_of, verdict_of
from aa_study_kernels import WORK, chunk_of, source_of


def series(**changes) -> Series:
    made = {
        "kind": "single",
        "size_us": 100.0,
        "elements": 1024,
        "gain": 0.0,
        "wanted": 300,
        "trials": 300,
    }
    return Series(**{**made, **changes})


def gains(**changes) -> Series:
    made = {"gain": 0.03, "wanted": 100, "trials": 100, "centers": [math.log(1.03)]}
    return series(**{**made, **changes})


def test_a_rate_has_its_exact_interval() -> None:
    # Nothing in 300: 1 - 0.025 ** (1 / 300).
    low, high = Rate(count=0, trials=300).interval
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 300)))
    assert Rate(count=0, trials=0).interval == (0.0, 1.0)


@pytest.mark.parametrize(("wins", "is_fair"), [(0, True), (1, True), (2, False)])
def test_one_equal_kernel_in_three_hundred_may_be_called_faster(wins, is_fair) -> None:
    found = [series(interval=wins), gains(interval=96)]
    assert verdict_of(found).is_fair is is_fair
    assert verdict_of(found).holds is is_fair


@pytest.mark.parametrize(("caught", "is_keen"), [(95, False), (96, True)])
def test_more_than_95_of_100_true_gains_must_be_found(caught, is_keen) -> None:
    assert verdict_of([series(), gains(interval=caught)]).is_keen is is_keen


def test_a_gain_that_is_another_by_the_clock_shows_nothing() -> None:
    assert verdict_of([series(), gains(interval=100, centers=[math.log(1.038)])]).is_keen
    far = verdict_of([series(), gains(interval=100, centers=[math.log(1.378)])])
    assert far.gains_off == pytest.approx(0.348)
    assert not far.is_keen


def test_a_gain_of_a_chain_of_launches_is_printed_and_not_asked_for() -> None:
    chain = gains(kind="launches", interval=0, centers=[math.log(0.99)])
    verdict = verdict_of([series(), series(kind="launches"), gains(interval=100), chain])
    assert verdict.holds
    assert verdict.false_wins.trials == 600
    assert "called faster 0 of 100" in text_of(chain)


def test_a_study_that_ran_out_of_time_shows_nothing() -> None:
    found = [series(trials=299), gains(interval=100)]
    assert not verdict_of(found).holds
    assert lines_of(verdict_of(found))[-1].startswith("not complete")


def test_both_kinds_of_faster_are_printed_and_the_wider_one_counts() -> None:
    found = [series(interval=2, gate=0), series(gain=0.03, wanted=9, trials=9, interval=9, gate=4)]
    assert lines_of(verdict_of(found))[0].startswith("equal kernels called faster: 2 of 300")
    assert "called faster 9 of 9" in text_of(found[1])
    assert "passed gate 4 4 of 9" in text_of(found[1])


def test_how_far_processes_lie_apart_is_told_from_the_ratio_of_work() -> None:
    true = math.log(1.03)
    found = series(gain=0.03, centers=[true + 0.003, true - 0.004])
    assert found.apart == pytest.approx(math.sqrt((9e-6 + 16e-6) / 2))


def test_few_races_run_in_one_pair_of_processes_while_there_is_time() -> None:
    # 290 races of 0.2 s are 58 s, which leaves 542 s for 271 pairs of 2 s: 4 races each will do.
    assert series(trials=10, races_s=2.0).races_now(4, load_s=2.0, left_s=600.0) == 4


def test_more_races_run_in_one_pair_where_the_time_would_not_do() -> None:
    # 290 races are 58 s; 22 s are left for 11 pairs, and one is loaded: 290 / 12 races each.
    assert series(trials=10, races_s=2.0).races_now(4, load_s=2.0, left_s=80.0) == 25


def test_no_more_races_run_than_are_wanted() -> None:
    assert series(trials=298, races_s=60.0).races_now(4, load_s=2.0, left_s=600.0) == 2
    assert series(wanted=0, trials=0).races_now(4, load_s=2.0, left_s=600.0) == 0


def test_settings_are_named_and_known() -> None:
    assert settings_of(["device=cuda", "races_each=2"])["races_each"] == "2"
    with pytest.raises(ValueError, match="expected one of device"):
        settings_of(["races=2"])


@pytest.mark.parametrize("kind", ["single", "launches"])
def test_kernels_compute_the_same_and_one_of_them_three_per_cent_less(kind) -> None:
    torch = pytest.importorskip("torch")
    equal, less = WORK[kind]
    assert equal.gain == 0.0
    assert less.gain == pytest.approx(0.03, abs=0.0005)
    made = {}
    for work in (less.mine, less.theirs):
        names: dict = {}
        elements = chunk_of(kind, "cpu")
        exec(source_of(kind, name="Model", work=work, elements=elements), names)
        torch.manual_seed(1)
        made[work] = names["Model"]()(*names["get_inputs"]())
    assert torch.equal(*made.values())
