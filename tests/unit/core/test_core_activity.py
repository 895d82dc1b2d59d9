"""Shares by hand, what is not sure enough, and what counts as falling back."""

from __future__ import annotations

import pytest

from kopt.activity import Activity, NothingRan, Ran, fallen_back, provenance


def activity(*ran: tuple[str, int, float], **times_us: float) -> Activity:
    made = tuple(Ran(name=name, launches=count, time_us=us) for name, count, us in ran)
    return Activity(ran=made, **times_us)


def whose(name: str):
    return {"m": "user", "l": "library"}.get(name[0], "aten")


REFERENCE = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 39.0), ("aten::view", 3, 1.0))


def test_shares_by_hand() -> None:
    # 75 of 100 us in its own kernels, 15 in a library's, 10 in torch's.
    found = provenance(
        activity(("mine", 2, 75.0), ("lib", 1, 15.0), ("fill", 1, 10.0)), owner=whose
    )
    assert found.own_share == (0.75, 0.75)
    assert found.library_share == 0.25
    assert [part.share for part in found.parts] == [0.75, 0.15, 0.10]
    assert found.words() == (
        "own 75%, library 15%, torch 10%: mine 75% (own), lib 15% (library), fill 10% (torch)"
    )


def test_code_between_operations_is_its_own_and_what_is_not_listed_is_not() -> None:
    found = provenance(activity(("add", 1, 10.0), own_us=80.0, rest_us=10.0), owner=whose)
    assert found.own_share[0] == 0.8


def test_a_share_that_the_interpreter_may_blur_is_none() -> None:
    # 0 of 10 us if it is the interpreter's, 5 of 15 us if it is not.
    found = provenance(activity(("add", 1, 10.0), unsure_us=5.0), owner=whose)
    assert found.own_share == pytest.approx((0.0, 1 / 3))
    assert found.library_share is None


def test_a_little_of_the_interpreter_blurs_nothing() -> None:
    found = provenance(activity(("add", 1, 10.0), own_us=90.0, unsure_us=20.0), owner=whose)
    assert found.library_share == pytest.approx(0.1)


def test_a_call_that_runs_nothing_has_no_owner() -> None:
    with pytest.raises(NothingRan, match="nothing ran"):
        provenance(activity(unsure_us=5.0), owner=whose)


def test_a_line_names_the_longest_and_counts_the_others() -> None:
    many = activity(*((f"{letter}{'x' * 80}", 1, 20.0) for letter in "abcde"))
    words = provenance(many, owner=whose).words()
    assert words.endswith("1 more")
    assert len(words) < 400


def test_the_references_own_path_is_a_fall_back() -> None:
    detail = fallen_back(REFERENCE, reference=REFERENCE, own_share=0.0)
    assert detail == (
        "100% of its time is what the eager reference runs: aten::mm, aten::relu, aten::view"
    )


def test_the_references_path_taken_four_times_is_a_fall_back() -> None:
    mine = activity(("aten::mm", 4, 240.0), ("aten::relu", 8, 156.0), ("aten::view", 12, 4.0))
    detail = fallen_back(mine, reference=REFERENCE, own_share=0.0)
    assert detail is not None
    assert "4 times over" in detail


def test_a_fig_leaf_beside_the_references_path_is_a_fall_back() -> None:
    # Its own kernel takes 2 of 102 us.
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0), ("mine", 1, 2.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.02) is not None


def test_kernels_of_its_own_are_no_fall_back() -> None:
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0), ("mine", 1, 10.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.09) is None


def test_the_interpreter_between_operations_hides_no_fall_back() -> None:
    same = (("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0))
    short, long = (activity(*same, own_us=own_us) for own_us in (8.0, 20.0))
    assert fallen_back(short, reference=REFERENCE, own_share=0.074)
    assert fallen_back(long, reference=REFERENCE, own_share=0.17) is None


def test_a_rewrite_that_saves_an_operation_is_no_fall_back() -> None:
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 1, 20.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.0) is None


def test_a_rewrite_that_puts_another_operation_in_is_no_fall_back() -> None:
    mine = activity(("aten::addmm", 1, 60.0), ("aten::relu", 2, 40.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.0) is None


def test_the_same_operations_with_a_copy_that_counts_are_no_fall_back() -> None:
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 39.0), ("aten::copy_", 1, 20.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.0) is None


def test_an_operation_more_than_a_multiple_counts_as_another() -> None:
    # The reference's path, and a third of the relu's 60 us beside it: 20 of 120 us are not its.
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 3, 60.0))
    assert fallen_back(mine, reference=REFERENCE, own_share=0.0) is None


def test_nothing_is_said_of_a_reference_that_runs_nothing() -> None:
    assert fallen_back(REFERENCE, reference=activity(), own_share=0.0) is None
