"""Shares by hand, what is not sure enough, and what counts as falling back."""

from __future__ import annotations

import pytest

from kopt.activity import Activity, FallBack, NothingRan, Ran, fall_back, provenance


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


def falls(mine: Activity, *, reference: Activity = REFERENCE) -> FallBack:
    made = provenance(mine, owner=whose)
    return fall_back(mine, reference=reference, made=made)


def test_the_references_own_path_is_a_fall_back() -> None:
    assert falls(REFERENCE) == FallBack(
        is_one=True,
        words="100% of its time is what the eager reference runs: aten::mm, aten::relu, aten::view",
    )


def test_the_references_path_taken_four_times_is_a_fall_back() -> None:
    found = falls(
        activity(("aten::mm", 4, 240.0), ("aten::relu", 8, 156.0), ("aten::view", 12, 4.0))
    )
    assert found.is_one
    assert "4 times over" in found.words


def test_a_fig_leaf_beside_the_references_whole_path_is_a_fall_back() -> None:
    # Its own kernel takes 2 of 102 us.
    assert falls(
        activity(
            *((each.name, each.launches, each.time_us) for each in REFERENCE.ran), ("mine", 1, 2.0)
        )
    ).is_one


@pytest.mark.parametrize(
    ("epilogue_us", "share"),
    [(0.5, "100%"), (1.9, "98%"), (2.1, "98%"), (4.0, "96%"), (40.0, "60%")],
)
def test_an_epilogue_of_its_own_beside_a_product_is_no_fall_back(epilogue_us, share) -> None:
    # On either side of what may be missing, 2 of 100 us, and of what is little, 5 of 100 us.
    product = ("lib::gemm", 1, 100.0 - epilogue_us)
    reference = activity(product, ("at::relu", 1, epilogue_us))
    found = falls(activity(product, ("mine", 1, epilogue_us)), reference=reference)
    words = f"{share} of its time is what the eager reference runs; kernels of its own run, and not"
    assert found == FallBack(is_one=False, words=f"{words} at::relu")


def test_a_fill_that_is_missing_beside_nothing_of_its_own_is_a_fall_back_still() -> None:
    assert falls(activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 39.0))).is_one


def test_kernels_of_its_own_are_no_fall_back() -> None:
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0), ("mine", 1, 10.0))
    assert not falls(mine).is_one


def test_the_interpreter_between_operations_hides_no_fall_back() -> None:
    # 8 us beside each of three operations are nobody's.
    same = (("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0))
    short, long = (activity(*same, own_us=own_us) for own_us in (24.0, 34.0))
    assert falls(short).is_one
    assert not falls(long).is_one


@pytest.mark.parametrize(
    ("launches", "own_us", "is_one"),
    [(1, 100.0, True), (1, 200.0, False), (400, 300.0, True), (400, 500.0, False)],
)
def test_between_a_tenth_and_a_quarter_of_a_long_call_is_nobodys(launches, own_us, is_one) -> None:
    same = ("aten::mm", launches, 1000.0)
    mine = activity(same, own_us=own_us)
    assert falls(mine, reference=activity(same)).is_one == is_one


def test_a_rewrite_that_saves_an_operation_is_no_fall_back() -> None:
    found = falls(activity(("aten::mm", 1, 60.0), ("aten::relu", 1, 20.0)))
    assert found == FallBack(is_one=False, words="it does not run the eager reference's own path")


def test_a_rewrite_that_puts_another_operation_in_is_no_fall_back() -> None:
    assert not falls(activity(("aten::addmm", 1, 60.0), ("aten::relu", 2, 40.0))).is_one


def test_the_same_operations_with_a_copy_that_counts_are_no_fall_back() -> None:
    mine = activity(("aten::mm", 1, 60.0), ("aten::relu", 2, 39.0), ("aten::copy_", 1, 20.0))
    assert not falls(mine).is_one


def test_an_operation_more_than_a_multiple_counts_as_another() -> None:
    # The reference's path, and a third of the relu's 60 us beside it: 20 of 120 us are not its.
    assert not falls(activity(("aten::mm", 1, 60.0), ("aten::relu", 3, 60.0))).is_one


def test_nothing_is_said_of_a_reference_that_runs_nothing() -> None:
    assert not falls(REFERENCE, reference=activity()).is_one


def test_what_nobody_lists_is_the_references_as_far_as_it_has_it_too() -> None:
    same = (("aten::mm", 1, 60.0), ("aten::relu", 2, 40.0))
    reference = activity(*same, rest_us=7.0)
    # 9 of 109 us pass outside of the operations, 7 of them there too; or 34 of 134 us.
    assert falls(activity(*same, rest_us=9.0), reference=reference).is_one
    assert not falls(activity(*same, rest_us=34.0), reference=reference).is_one
    assert falls(activity(*same, rest_us=7.0), reference=reference).words.startswith("100%")
