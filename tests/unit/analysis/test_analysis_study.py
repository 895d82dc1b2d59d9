"""Studies: what is compared, what is kept apart, and what is said about it."""

from dataclasses import replace

import pytest

from kopt.analysis.compare import compare_all
from kopt.analysis.study import Asked, Study, study
from kopt.analysis.trial import Lead, Trial
from kopt.testing.sample_trials import SAMPLE_TERMS, sample_trial

PROBLEMS = [f"set/p{n}" for n in range(8)]


def arm(name: str, speedups: list[float | None], **changes: object) -> list[Trial]:
    pairs = zip(PROBLEMS, speedups, strict=False)
    return [sample_trial(problem, speedup, arm=name, **changes) for problem, speedup in pairs]


def studied(trials: list[Trial], **asked: object) -> Study:
    return study(trials, settings={}, asked=replace(Asked(), **asked))  # type: ignore[arg-type]


def test_arms_are_compared_on_the_problems_and_seeds_that_both_have() -> None:
    first = arm("new", [4.0, 4.0, 2.0, None])
    second = arm("old", [2.0, 2.0, 2.0, None, 9.0])
    (found,) = compare_all([*first, *second], cap=None, over_seeds="mean", seed=0)
    assert (found.first, found.second) == ("new", "old")
    assert (found.problems, found.searches, found.unpaired) == (4, 4, 1)
    # Ratios 2, 2, 1, 1: geometric mean 2^(2/4).
    assert found.ratio == pytest.approx(2**0.5)
    assert found.test is not None
    assert (found.test.wins, found.test.ties, found.test.num) == (2, 2, 2)
    # Two equal wins: one of four assignments of signs does as well; family of two directions.
    assert found.test.p == pytest.approx(0.25)
    assert found.p_holm == pytest.approx(0.5)
    assert (found.p_reverse, found.p_reverse_holm) == (1.0, 1.0)


def test_a_cap_holds_in_comparisons() -> None:
    trials = [*arm("new", [100.0, 2.0]), *arm("old", [10.0, 2.0])]
    (found,) = compare_all(trials, cap=5.0, over_seeds="mean", seed=0)
    assert found.ratio == pytest.approx(1.0)


def test_the_best_of_the_seeds_that_both_have_is_compared() -> None:
    new = [sample_trial("a", 2.0, arm="new", seed=0), sample_trial("a", 8.0, arm="new", seed=1)]
    old = [sample_trial("a", 4.0, arm="old", seed=0), sample_trial("a", 1.0, arm="old", seed=1)]
    old.append(sample_trial("a", 99.0, arm="old", seed=2))
    (best,) = compare_all([*new, *old], cap=None, over_seeds="best", seed=0)
    (mean,) = compare_all([*new, *old], cap=None, over_seeds="mean", seed=0)
    assert best.ratio == pytest.approx(2.0)  # 8 ÷ 4
    assert mean.ratio == pytest.approx(2.0)  # sqrt(16) ÷ sqrt(4)


def test_searches_can_be_compared_after_as_many_candidates() -> None:
    quick = sample_trial("a", 4.0, arm="quick", leads=(Lead(1, 4.0),))
    slow = sample_trial("a", 8.0, arm="slow", leads=(Lead(2, 2.0), Lead(9, 8.0)))
    ratios = []
    for at in (1, 5, None):
        (found,) = compare_all([quick, slow], cap=None, over_seeds="mean", seed=0, at=at)
        ratios.append(found.ratio)
    assert ratios == pytest.approx([4.0, 2.0, 0.5])  # at first slow has nothing: 1


def test_a_control_asks_one_direction_only() -> None:
    trials = [*arm("a", [2.0] * 8), *arm("b", [3.0] * 8), *arm("c", [4.0] * 8)]
    found = compare_all(trials, cap=None, over_seeds="mean", seed=0, control="b")
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("c", "b")]
    assert [each.p_reverse for each in found] == [None, None]
    # c > b on all 8: p = 1/256, of two tests.
    assert found[1].p_holm == pytest.approx(2 / 256)


def test_all_ties_have_no_p_and_are_said() -> None:
    (stratum,) = studied([*arm("a", [None] * 6), *arm("b", [None] * 6)]).strata
    (found,) = stratum.comparisons
    assert found.test is not None
    assert (found.test.p, found.p_holm, found.ratio, found.interval) == (
        None,
        None,
        1.0,
        (1.0, 1.0),
    )
    assert (found.p_optimized, found.outcome_counts) == (None, None)
    assert any("every pair ties" in note for note in stratum.notes)


def test_few_pairs_are_said() -> None:
    (stratum,) = studied([*arm("a", [2.0, 3.0]), *arm("b", [1.5, 2.0])]).strata
    assert any("no p can be below 0.05" in note for note in stratum.notes)


def test_one_problem_has_figures_without_intervals() -> None:
    (stratum,) = studied([sample_trial("a", 2.0)]).strata
    (figures,) = stratum.arms
    assert (figures.means[0].geomean, figures.means[0].interval) == (pytest.approx(2.0), None)
    assert stratum.comparisons == ()
    assert any(note.startswith("one problem") for note in stratum.notes)


def test_terms_are_never_mixed() -> None:
    loose = replace(SAMPLE_TERMS, ladder="loose", device="H200")
    found = studied([*arm("a", [2.0, 2.0]), *arm("b", [3.0, 3.0], terms=loose)])
    assert [stratum.terms.ladder for stratum in found.strata] == ["strict", "loose"]
    assert [stratum.comparisons for stratum in found.strata] == [(), ()]
    assert found.notes == (
        "2 sets of terms, which differ in ladder, device: each has its own tables, and nothing is "
        "compared across them",
    )


def test_two_revisions_of_a_problem_are_not_paired_and_said() -> None:
    new = [sample_trial("set/p", 2.0, arm="new")]
    old = [replace(sample_trial("set/p", 1.0, arm="old"), problem="id of another text")]
    found = studied([*new, *old])
    (comparison,) = found.strata[0].comparisons
    assert (comparison.problems, comparison.ratio, comparison.test) == (0, None, None)
    assert any("several revisions" in note for note in found.notes)
    assert any("not compared" in note for note in found.strata[0].notes)


def test_degenerate_problems_stand_apart_whichever_search_found_it() -> None:
    odd = [sample_trial("odd", 900.0, arm="a", degenerate=True)]
    odd.append(sample_trial("odd", None, arm="b"))
    (stratum,) = studied([*arm("a", [2.0, 2.0]), *arm("b", [3.0, 3.0]), *odd]).strata
    assert [each.problems for each in stratum.arms] == [2, 2]
    assert [(each.arm, each.problems) for each in stratum.degenerate] == [("a", 1), ("b", 1)]
    assert stratum.comparisons[0].problems == 2


def test_shards_of_one_experiment_are_one_arm() -> None:
    settings = {"x": {"search.iterations": 5, "new": 1}, "y": {"search.iterations": 5}}
    trials = [sample_trial("a", 2.0, run="x"), sample_trial("b", 2.0, run="y")]
    found = study(trials, settings=settings, asked=Asked())
    assert found.notes == ()
    assert found.strata[0].arms[0].runs == ("x", "y")


def test_an_arm_of_two_settings_is_told_apart_and_said() -> None:
    settings = {"x": {"search.iterations": 5}, "y": {"search.iterations": 9}}
    trials = [sample_trial("a", 2.0, run="x"), sample_trial("b", 2.0, run="y")]
    found = study(trials, settings=settings, asked=Asked())
    names = ["arm(search.iterations=5)", "arm(search.iterations=9)"]
    assert [each.arm for each in found.strata[0].arms] == names
    assert found.notes == (
        f"arm arm is told apart as {', '.join(names)}: settings differ (search.iterations)",
    )


def test_a_sweep_over_a_setting_and_seeds_is_an_arm_for_each_value() -> None:
    trials, settings = [], {}
    for run, (iterations, seed) in enumerate([(5, 0), (5, 1), (9, 0), (9, 1)]):
        settings[f"job{run}"] = {"search.iterations": iterations, "search.kind": "mcts"}
        trials.append(sample_trial("a", 2.0, seed=seed, run=f"job{run}"))
    found = study(trials, settings=settings, asked=Asked())
    few, many = found.strata[0].arms
    assert (few.arm, few.runs, few.seeds) == (
        "arm(search.iterations=5)",
        ("job0", "job1"),
        (0, 1),
    )
    assert (many.runs, many.searches) == (("job2", "job3"), 2)
    assert found.strata[0].comparisons[0].searches == 2


def test_pooled_runs_of_one_name_are_repetitions() -> None:
    settings = {"x": {"temperature": 0.2}, "y": {"temperature": 0.7}}
    trials = [sample_trial("a", 2.0, run="x"), sample_trial("a", 8.0, run="y")]
    trials.append(sample_trial("a", 4.0, arm="other", run="x"))
    found = study(trials, settings=settings, asked=Asked(pool=True, over_seeds="best"))
    pooled, other = found.strata[0].arms
    assert (pooled.arm, pooled.seeds, pooled.means[0].geomean) == ("arm", (0, 1), pytest.approx(8))
    assert other.searches == 1
    assert found.notes == (
        "arm arm pools 2 runs: its searches of a problem count as seeds, in order",
    )


def test_a_problem_and_seed_that_two_runs_searched_is_compared_and_not_merged() -> None:
    trials = [sample_trial("a", 2.0, run="x"), sample_trial("a", 4.0, run="y")]
    found = study(trials, settings={}, asked=Asked())
    (comparison,) = found.strata[0].comparisons
    assert (comparison.first, comparison.second, comparison.problems) == ("arm@x", "arm@y", 1)
    assert "the same problems and seeds were searched in more than one run" in found.notes[0]


def test_arms_of_different_extent_are_said() -> None:
    (stratum,) = studied([*arm("a", [2.0] * 5), *arm("b", [3.0] * 4)]).strata
    assert any("different problems or seeds" in note for note in stratum.notes)
    assert any("without a partner" in note for note in stratum.notes)


def test_the_same_trials_give_the_same_study() -> None:
    trials = [*arm("a", [2.0, 1.0, None, 4.0]), *arm("b", [3.0, 2.0, 1.5, None])]
    assert studied(trials) == studied(trials)
