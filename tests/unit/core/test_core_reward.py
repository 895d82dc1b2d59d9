"""Rewards: KernelPro Eq. 1, our floor, and what the speed-up is against."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kopt.reward import RewardRule, reward, speedup_over, with_energy
from kopt.timing import Timing
from kopt.verdict import (
    Cheated,
    CompileFailed,
    Correct,
    Crashed,
    Incorrect,
    NumericError,
    TimedOut,
)

TIMING = Timing(
    time_us=50.0,
    time_ci_us=(49.0, 51.0),
    baseline="compile",
    baseline_us=100.0,
    speedup=2.0,
    speedup_ci=(1.9, 2.1),
    eager_us=200.0,
    compile_us=100.0,
)


def correct(**changes) -> Correct:
    return Correct(
        timing=replace(TIMING, **changes),
        error=NumericError(max_abs=0.0, rel_norm=0.0, rho=None),
    )


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (correct(), math.log(2.0)),
        (correct(speedup=1.0), 0.0),
        (correct(speedup=0.01), -1.9),
        (Incorrect(check="values:own", detail="x"), -2.0),
        (Cheated(check="static:gc", detail="x"), -2.0),
        (CompileFailed(stage="build", log="x"), -3.0),
        (Crashed(stage="timing", log="x"), -3.0),
        (TimedOut(stage="timing", limit_s=1.0), -3.0),
    ],
)
def test_each_verdict_has_its_reward(verdict, expected) -> None:
    assert reward(verdict, RewardRule()) == pytest.approx(expected)


def test_without_a_floor_a_slow_kernel_ranks_below_a_wrong_one() -> None:
    rule = RewardRule(floor=None)
    assert reward(correct(speedup=0.01), rule) == pytest.approx(math.log(0.01))
    assert reward(correct(speedup=0.01), rule) < reward(Incorrect(check="x", detail="x"), rule)


@pytest.mark.parametrize(
    ("baseline", "compile_us", "expected"),
    [
        ("best", 100.0, 2.0),
        ("eager", 100.0, 4.0),
        ("compile", 100.0, 2.0),
        ("compile", None, 4.0),
    ],
)
def test_the_rule_names_what_the_speedup_is_against(baseline, compile_us, expected) -> None:
    assert speedup_over(replace(TIMING, compile_us=compile_us), baseline) == expected
    verdict = correct(compile_us=compile_us)
    assert reward(verdict, RewardRule(baseline=baseline)) == pytest.approx(math.log(expected))


def test_a_given_kernel_is_what_the_speedup_is_against_where_there_is_one() -> None:
    assert speedup_over(replace(TIMING, given_us=75.0), "given") == 1.5  # 75 us / 50 us
    raced = replace(TIMING, given_us=75.0, baseline="given", speedup=1.4)
    assert speedup_over(raced, "given") == 1.4  # of interleaved pairs, which say more
    assert speedup_over(TIMING, "given") == speedup_over(TIMING, "best") == 2.0
    assert reward(correct(given_us=75.0), RewardRule(baseline="given")) == pytest.approx(
        math.log(1.5)
    )


def test_energy_counts_only_where_it_is_weighed_and_known() -> None:
    saved = with_energy(correct(), 1.25)
    assert reward(saved, RewardRule()) == pytest.approx(math.log(2.0))
    rule = RewardRule(energy_epsilon=0.01)
    assert reward(correct(), rule) == pytest.approx(math.log(2.0))
    # ln 2 + 0.01 · ln 1.25
    assert reward(saved, rule) == pytest.approx(0.693147 + 0.002231, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.5])
def test_no_energy_outweighs_one_per_cent_of_speed(epsilon: float) -> None:
    rule = RewardRule(energy_epsilon=epsilon)
    slower = with_energy(correct(speedup=2.0), 1000.0)
    faster = with_energy(correct(speedup=2.0 * math.exp(0.0101)), 0.001)
    assert reward(faster, rule) > reward(slower, rule)


def test_a_wrong_candidate_saves_nothing() -> None:
    wrong = Incorrect(check="x", detail="x")
    assert with_energy(wrong, 2.0) is wrong
