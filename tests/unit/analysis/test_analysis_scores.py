"""Scores, caps, best@N, turns, outcomes: figures of one arm, by hand."""

import math

import pytest

from kopt.analysis.arm_figures import arm_figures, capped_means
from kopt.analysis.best_at import best_at, grid
from kopt.analysis.outcomes import root_causes, verdict_kinds
from kopt.analysis.score import geomean_of, of_problem, scores
from kopt.analysis.trial import Energy, Lead, Turn
from kopt.analysis.turns import class_figures, tool_figures
from kopt.testing.sample_trials import sample_trial


def test_caps_and_the_unsolved_by_hand() -> None:
    # 64, 4 and unsolved: (64 · 4 · 1)^(1/3) = 6.35; capped at 16: (16 · 4)^(1/3) = 4; solved only:
    # (64 · 4)^(1/2) = 16 and (16 · 4)^(1/2) = 8.
    trials = [sample_trial("a", 64.0), sample_trial("b", 4.0), sample_trial("c", None)]
    plain, capped = capped_means(trials, caps=(None, 16.0), over_seeds="mean", seed=0)
    assert plain.geomean == pytest.approx(256 ** (1 / 3))
    assert capped.geomean == pytest.approx(4.0)
    assert (plain.solved_only, capped.solved_only) == pytest.approx((16.0, 8.0))


def test_a_correct_candidate_below_the_baseline_counts_as_it_is() -> None:
    trials = [sample_trial("a", 0.5), sample_trial("b", 2.0)]
    assert geomean_of(scores(trials), over_seeds="mean") == pytest.approx(1.0)


def test_seeds_are_averaged_or_the_best_is_taken() -> None:
    trials = [sample_trial("a", 8.0, seed=0), sample_trial("a", 2.0, seed=1)]
    trials.append(sample_trial("b", None))
    # a: sqrt(8 · 2) = 4 or 8; b: 1.
    assert geomean_of(scores(trials), over_seeds="mean") == pytest.approx(2.0)
    assert geomean_of(scores(trials), over_seeds="best") == pytest.approx(math.sqrt(8.0))


def test_where_nothing_is_solved_there_is_no_mean_of_the_solved() -> None:
    (only,) = capped_means([sample_trial("a", None)], caps=(None,), over_seeds="mean", seed=0)
    assert (only.geomean, only.solved_only, only.interval) == (1.0, None, None)
    with pytest.raises(ValueError, match="at least one"):
        of_problem([], over_seeds="mean")


def test_best_at_n_follows_what_leads_and_counts_who_still_runs() -> None:
    long = sample_trial(
        "a", 8.0, leads=(Lead(2, 2.0), Lead(7, 8.0)), verdicts={"correct": 5, "crashed": 5}
    )
    short = sample_trial("b", 2.0, leads=(Lead(1, 2.0),), verdicts={"correct": 1})
    curve = best_at([long, short], steps=grid(10), cap=None, over_seeds="mean")
    assert [each.candidates for each in curve] == [1, 2, 5, 10]
    # a: 1, 2, 2, 8; b: 2 throughout.
    assert [each.geomean for each in curve] == pytest.approx([math.sqrt(2), 2.0, 2.0, 4.0])
    assert [each.running for each in curve] == [2, 1, 1, 1]


def test_the_grid_ends_at_the_longest_search() -> None:
    assert grid(60) == [1, 2, 5, 10, 20, 50, 60]
    assert (grid(1), grid(0)) == ([1], [])


def test_fires_and_hits_of_tools_by_hand() -> None:
    first = sample_trial(
        "a",
        2.0,
        turns=(
            Turn(("spill", "stall"), "compute", 4.0),
            Turn(("spill",), "compute", 1.5),  # not above 1.5
            Turn(("spill",), "memory", None),
            Turn((), None, 1.2),
        ),
    )
    second = sample_trial("b", 2.0, turns=(Turn(("spill",), "memory", 2.0),))
    spill, stall = tool_figures([first, second])
    assert (spill.name, spill.turns, spill.problems, spill.hits) == ("spill", 4, 2, 2)
    assert spill.rate.share == 0.5
    # The largest of a is 4, of b 2.
    assert (spill.mean_gain, spill.best_gain) == (3.0, 4.0)
    assert spill.geomean_gain == pytest.approx(math.sqrt(8.0))
    assert (stall.turns, stall.hits) == (1, 1)
    classes = {each.name: each for each in class_figures([first, second])}
    assert {name: each.turns for name, each in classes.items()} == {
        "compute": 2,
        "memory": 2,
        "not profiled": 1,
    }
    assert classes["memory"].mean_gain == 2.0


def test_a_tool_after_which_nothing_was_correct_has_no_gain() -> None:
    (only,) = tool_figures([sample_trial("a", 1.0, turns=(Turn(("spill",), None, None),))])
    assert (only.mean_gain, only.geomean_gain, only.best_gain) == (None, None, None)
    assert only.rate.share == 0.0


def test_a_plateau_is_correct_and_never_above_the_baseline() -> None:
    trials = [
        sample_trial("a", 0.9, peak=0.99),
        sample_trial("b", 0.9, peak=1.2),  # an unsure one was above
        sample_trial("c", None),
        sample_trial("d", 2.0),
    ]
    figures = arm_figures(trials, steps=[1], cap=None, over_seeds="mean", seed=0)
    assert (figures.plateau.share, figures.solved.share) == (0.25, 0.75)


def test_causes_are_counted_by_their_first_words() -> None:
    trials = [
        sample_trial("a", None, root_cause="failed: no device"),
        sample_trial("b", None, root_cause="failed: another"),
        sample_trial("c", None, root_cause="correctness"),
        sample_trial("d", 2.0),
    ]
    assert root_causes(trials) == {"failed": 2, "correctness": 1}
    assert verdict_kinds(trials) == {"incorrect": 3, "correct": 1}


def test_energy_is_told_where_it_was_recorded() -> None:
    trials = [
        sample_trial("a", 2.0, energy=Energy(measured=4.0, proxy=None)),
        sample_trial("b", 2.0, energy=Energy(measured=1.0, proxy=2.0)),
        sample_trial("c", 2.0),
    ]
    energy = arm_figures(trials, steps=[], cap=None, over_seeds="mean", seed=0).energy
    assert energy is not None
    assert (energy.searches, energy.measured, energy.proxy) == (2, pytest.approx(2.0), 2.0)
    plain = arm_figures(trials[2:], steps=[], cap=None, over_seeds="mean", seed=0)
    assert plain.energy is None


def test_no_trial_has_no_figures() -> None:
    with pytest.raises(ValueError, match="at least one search"):
        arm_figures([], steps=[], cap=None, over_seeds="mean", seed=0)
