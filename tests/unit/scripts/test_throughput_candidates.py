from collections import Counter

import pytest
from bench_throughput_candidates import hanging_candidate, mixed_candidates, sample_of
from bench_throughput_others import Judged, per_hour

from kopt.static_check import static_check


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_no_two_candidates_are_the_same_text(device):
    made = mixed_candidates(device, per_problem=24)
    assert len({each.candidate.candidate_id for each in made}) == 4 * 24
    assert len({each.label for each in made}) == 4 * 24


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_candidate_gets_past_the_static_gate(device):
    # What is not to compile fails its compiler, not Python's parser or a tripwire.
    for each in [*mixed_candidates(device, per_problem=12), hanging_candidate(device)]:
        found = static_check(each.candidate.source, language=each.candidate.language)
        assert found.passed, each.label


def test_a_dozen_of_each_problem_has_every_kind_of_candidate():
    made = mixed_candidates("cuda", per_problem=12)
    kinds = Counter((each.candidate.language, each.outcome) for each in made)
    assert {language for language, _ in kinds} == {"triton", "cuda", "torch"}
    assert {outcome for _, outcome in kinds} == {"correct", "wrong", "crashing", "not_compiling"}
    # Of twelve: three Triton, two CUDA and one torch are right, for each of four problems.
    assert sum(count for (_, outcome), count in kinds.items() if outcome == "correct") == 24


def test_a_sample_has_each_kind_in_its_share():
    made = mixed_candidates("cuda", per_problem=12)
    sample = sample_of(made, size=12)
    # 48 candidates are 20 in Triton, 16 in CUDA and 12 in torch.
    assert Counter(each.candidate.language for each in sample) == {
        "triton": 5,
        "cuda": 4,
        "torch": 3,
    }
    assert len({each.label for each in sample}) == 12


def test_any_first_part_of_a_sample_has_right_and_wrong_ones_of_every_language():
    sample = sample_of(mixed_candidates("cuda", per_problem=12), size=12)
    languages = [each.candidate.language for each in sample]
    # The other evaluator takes a minute for one in CUDA: it comes last in each round.
    assert languages[:6] == ["triton", "torch", "cuda"] * 2
    assert "correct" in {each.outcome for each in sample[:3]}
    assert len({each.outcome for each in sample[:6]}) == 4


def test_a_sample_is_at_most_all_of_them():
    made = mixed_candidates("cpu", per_problem=1)
    assert {each.label for each in sample_of(made, size=12)} == {each.label for each in made}


def judged(language, wall_s):
    return Judged(
        label="x",
        candidate="x",
        language=language,
        wall_s=wall_s,
        cpu_s=0.0,
        judged_s=wall_s,
        verdict="correct",
        reason="",
    )


def test_the_others_rate_is_weighted_with_the_languages_of_the_mix():
    mix = mixed_candidates("cuda", per_problem=12)
    # 20 x 10 s + 16 x 60 s + 12 x 5 s = 1,220 s for 48 candidates.
    rate = per_hour(
        [judged("triton", 8.0), judged("triton", 12.0), judged("cuda", 60.0), judged("torch", 5.0)],
        mix=mix,
    )
    assert rate == pytest.approx(3600 * 48 / 1220)


def test_a_language_that_was_not_sampled_is_left_out_of_the_rate():
    mix = mixed_candidates("cuda", per_problem=12)
    # 20 x 10 s for the 20 in Triton.
    assert per_hour([judged("triton", 10.0)], mix=mix) == pytest.approx(360.0)


def test_nothing_judged_is_no_rate():
    assert per_hour([], mix=mixed_candidates("cpu", per_problem=1)) == 0.0
