"""Comparison of outputs: by ladder, for every dtype and form, with the first wrong element."""

from __future__ import annotations

import math

import pytest
import torch

from kopt.actors.verify import measure as measuring
from kopt.actors.verify.compare import (
    compare_outputs,
    constant_output,
    distances,
    flatten,
    structure_failure,
    worst,
)
from kopt.ladder import LADDERS
from kopt.verdict import NumericError

STRICT, LOOSE, KERNELBENCH = LADDERS["strict"], LADDERS["loose"], LADDERS["kernelbench"]


def judge(candidate, reference, ref64=None, *, ladder=STRICT, inputs=()):
    exact = reference.double() if ref64 is None else ref64
    return compare_outputs(
        candidate, reference=reference, ref64=exact, ladder=ladder, inputs=inputs
    )


def test_distances_are_those_of_hand_arithmetic() -> None:
    found = distances(
        torch.tensor([1.0, 2.5]),
        reference=torch.tensor([1.0, 2.0]),
        ref64=torch.tensor([1.25, 2.0], dtype=torch.float64),
        rtol=0.125,
    )
    assert found.candidate == 0.5
    assert found.reference == 0.25
    assert found.scale == 2.0
    assert found.excess == 0.5 - 0.125 * 2.0


def test_chunks_change_no_figure_whatever_the_strides(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    candidate = torch.rand(7, 5, 11, generator=generator).transpose(0, 2)
    reference = torch.rand(11, 1, 7, generator=generator).expand(11, 5, 7)
    ref64 = torch.rand(11, 5, 7, dtype=torch.float64, generator=generator)
    whole = distances(candidate, reference=reference, ref64=ref64, rtol=1e-3)
    for size in (1, 3, 7, 36, 100):
        monkeypatch.setattr(measuring, "CHUNK_ELEMENTS", size)
        assert distances(candidate, reference=reference, ref64=ref64, rtol=1e-3) == whole
        copies = [
            torch.cat([pieces[0] for _, pieces in measuring.chunks(candidate)]),
            torch.tensor([start for start, _ in measuring.chunks(candidate)]),
        ]
        assert torch.equal(copies[0], candidate.reshape(-1))
        assert copies[1][0] == 0


def test_the_index_of_the_first_wrong_element_survives_chunks(monkeypatch) -> None:
    monkeypatch.setattr(measuring, "CHUNK_ELEMENTS", 8)
    reference = torch.zeros(3, 4, 5)
    candidate = reference.clone()
    candidate[1, 2, 3] = 7.0
    candidate[2, 0, 0] = 7.0
    failure = judge(candidate, reference).failure
    assert failure is not None
    assert "first at (1, 2, 3): expected 0, found 7 (2 of 60 wrong)" in failure


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_candidate_that_is_not_finite_is_infinitely_far(value) -> None:
    reference = torch.ones(4)
    candidate = torch.tensor([1.0, value, 1.0, 1.0])
    found = distances(candidate, reference=reference, ref64=reference.double(), rtol=1e-3)
    assert found.candidate == math.inf
    assert found.excess == math.inf
    comparison = judge(candidate, reference)
    assert comparison.failure is not None
    assert "not finite" in comparison.failure
    assert "first at (1)" in comparison.failure
    assert comparison.error.max_abs == math.inf


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reference_that_is_not_finite_is_not_compared(value) -> None:
    """Inf equals inf in allclose: class 49."""
    reference = torch.tensor([1.0, value])
    with pytest.raises(ValueError, match="not finite"):
        judge(reference.clone(), reference)


def test_more_exact_than_the_reference_passes_strict() -> None:
    ref64 = torch.tensor([1.0, 2.0], dtype=torch.float64)
    reference = torch.tensor([1.0, 2.004])
    comparison = judge(torch.tensor([1.0, 2.0]), reference, ref64)
    assert comparison.failure is None
    assert comparison.error.rho == 0.0


def test_ten_times_the_reference_error_passes_and_eleven_times_does_not() -> None:
    ref64 = torch.tensor([1000.0, 1.0], dtype=torch.float64)
    reference = torch.tensor([1000.0, 1.0]).double() + torch.tensor([0.0, 2.0**-10])
    ten = ref64 + torch.tensor([0.0, 10 * 2.0**-10])
    eleven = ref64 + torch.tensor([0.0, 11 * 2.0**-10])
    assert judge(ten, reference, ref64).failure is None
    failure = judge(eleven, reference, ref64).failure
    assert failure is not None
    assert "11 times the reference's own" in failure


def test_bfloat16_inside_fails_strict_and_passes_loose() -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = torch.rand(32, 64, generator=generator), torch.rand(64, 16, generator=generator)
    low = (a.bfloat16().float() @ b.bfloat16().float()).contiguous()
    ref64 = a.double() @ b.double()
    assert judge(low, a @ b, ref64).failure is not None
    assert judge(a @ b, a @ b, ref64).failure is None
    assert judge(ref64.float(), a @ b, ref64, ladder=LOOSE).failure is None


def test_zeros_do_not_pass_for_a_small_output() -> None:
    """Class 41: a softmax over many columns is far below an absolute tolerance."""
    generator = torch.Generator().manual_seed(2)
    x = torch.randn(2, 20_000, generator=generator)
    reference, ref64 = x.softmax(-1), x.double().softmax(-1)
    assert judge(torch.zeros_like(reference), reference, ref64).failure is not None
    assert judge(torch.full_like(reference, 1 / 20_000), reference, ref64).failure is not None
    assert judge(reference.clone(), reference, ref64).failure is None


def test_kernelbench_gives_half_precision_its_wider_tolerance() -> None:
    reference = torch.tensor([1.0, 2.0]).half()
    candidate = torch.tensor([1.0, 2.02]).half()
    assert judge(candidate, reference, ladder=KERNELBENCH).failure is None
    failure = judge(candidate.float(), reference.float(), ladder=KERNELBENCH).failure
    assert failure is not None
    assert "0.0001" in failure


def test_a_reference_that_jumped_does_not_excuse_everything() -> None:
    """Where rounding crossed a threshold, the largest error is 1 and ρ alone passes zeros."""
    ref64 = torch.ones(10_000, dtype=torch.float64)
    reference = torch.ones(10_000)
    reference[3] = 0.0
    assert judge(reference.clone(), reference, ref64).failure is None
    failure = judge(torch.zeros(10_000), reference, ref64).failure
    assert failure is not None
    assert "error norm 100 against float64" in failure


def test_a_single_number_that_the_reference_hits_by_luck_binds_nobody() -> None:
    """100 has steps of 7.6e-6 in float32: one step off is as good as none."""
    ref64 = torch.tensor(100.0000001, dtype=torch.float64)
    reference = torch.tensor(100.0)
    comparison = judge(torch.nextafter(reference, torch.tensor(200.0)), reference, ref64)
    assert comparison.failure is None
    assert comparison.error.rho is not None
    assert comparison.error.rho < 1.0
    assert judge(torch.tensor(100.001), reference, ref64).failure is not None
    half = torch.tensor(1.0).bfloat16()
    near = torch.tensor(1.0078125).bfloat16()
    exact = torch.tensor(1.00001, dtype=torch.float64)
    assert judge(near, half, exact).failure is None
    assert judge(torch.tensor(1.03125).bfloat16(), half, exact).failure is not None


def test_without_a_float64_form_the_reference_itself_decides() -> None:
    reference = torch.tensor([100.0, 1.0]).bfloat16()
    near = torch.tensor([100.5, 1.0]).bfloat16()
    far = torch.tensor([100.0, 1.125]).bfloat16()
    assert judge(near, reference, reference).failure is None
    assert judge(far, reference, reference).failure is not None


def test_trees_are_flattened_with_paths_by_sorted_key() -> None:
    tree = ([1, {"b": 2, "a": (3, None)}], 4)
    assert flatten(tree) == [
        ("[0][0]", 1),
        ("[0][1]['a'][0]", 3),
        ("[0][1]['a'][1]", None),
        ("[0][1]['b']", 2),
        ("[1]", 4),
    ]
    assert flatten(5) == [("", 5)]
    assert flatten([]) == []


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (torch.zeros(2, 3), "output: expected 2 outputs, found a float32 tensor"),
        ((torch.zeros(2, 3),), "expected 2 outputs, found 1 outputs"),
        ([], "expected 2 outputs, found 0 outputs"),
        (None, "expected 2 outputs, found a NoneType"),
        ((torch.zeros(3, 2), {"m": torch.zeros(1)}), "output[0]: expected a float32 tensor of"),
        ((torch.zeros(2, 3).half(), {"m": torch.zeros(1)}), "found a float16 tensor"),
        ((torch.zeros(2, 3), {"n": torch.zeros(1)}), "output[1]: expected a dict of ['m']"),
        ((torch.zeros(2, 3), {"m": 0.0}), "output[1]['m']: expected a float32 tensor"),
        ((torch.zeros(2, 3, device="meta"), {"m": torch.zeros(1)}), "on meta"),
    ],
)
def test_another_form_is_refused_in_one_line_with_the_first_difference(candidate, words) -> None:
    reference = (torch.zeros(2, 3), {"m": torch.zeros(1)})
    failure = structure_failure(candidate, reference=reference)
    assert failure is not None
    assert words in failure
    comparison = compare_outputs(candidate, reference=reference, ref64=reference, ladder=STRICT)
    assert comparison.failure == failure
    assert comparison.error.max_abs == math.inf


def test_a_list_stands_for_a_tuple() -> None:
    assert structure_failure([torch.zeros(1), 2], reference=(torch.zeros(1), 3)) is None


def test_every_output_of_a_tuple_is_compared() -> None:
    reference = (torch.ones(2), torch.ones(3, dtype=torch.int64), {"a": torch.ones(4)})
    ref64 = (torch.ones(2).double(), reference[1], {"a": torch.ones(4).double()})
    for part, path in ((0, "[0]"), (1, "[1]"), (2, "[2]['a']")):
        wrong = [torch.ones(2), torch.ones(3, dtype=torch.int64), {"a": torch.ones(4)}]
        leaf = wrong[part]["a"] if part == 2 else wrong[part]
        leaf[-1] = 5
        comparison = compare_outputs(tuple(wrong), reference=reference, ref64=ref64, ladder=STRICT)
        assert comparison.failure is not None
        assert comparison.failure.startswith(f"output{path}: ")
        assert comparison.error.max_abs == 4.0


def test_integers_and_bools_must_be_equal() -> None:
    reference = torch.tensor([[1, 2], [3, 4]])
    assert judge(reference.clone(), reference).failure is None
    failure = judge(torch.tensor([[1, 2], [9, 4]]), reference).failure
    assert failure is not None
    assert "first at (1, 0): expected 3, found 9 (1 of 4 wrong)" in failure
    truth = torch.tensor([True, False])
    failure = judge(~truth, truth).failure
    assert failure is not None
    assert "expected True, found False (2 of 2 wrong)" in failure


def test_an_integer_beyond_float64_is_still_compared_exactly() -> None:
    reference = torch.tensor([2**60])
    assert judge(reference + 1, reference).failure is not None


def test_complex_outputs_are_compared_by_both_parts() -> None:
    reference = torch.tensor([1 + 2j, 3 - 4j])
    assert judge(reference.clone(), reference, reference.to(torch.complex128)).failure is None
    wrong = torch.tensor([1 + 2j, 3 + 4j])
    failure = judge(wrong, reference, reference.to(torch.complex128)).failure
    assert failure is not None
    assert "first at (1)" in failure
    assert "(1 of 2 wrong)" in failure


def test_plain_numbers_are_judged_like_tensors_and_other_values_by_equality() -> None:
    def plain(candidate: object, reference: object) -> str | None:
        return compare_outputs(
            candidate, reference=reference, ref64=reference, ladder=LOOSE
        ).failure

    assert plain(1.0001, 1.0) is None
    assert plain(1.5, 1.0) is not None
    assert plain(3, 3) is None
    assert plain(4, 3) is not None
    assert plain("mean", "mean") is None
    assert plain("sum", "mean") == "output: expected 'mean', found 'sum'"
    assert plain(None, None) is None


def test_an_empty_output_is_equal_to_an_empty_output() -> None:
    comparison = judge(torch.zeros(0, 3), torch.zeros(0, 3))
    assert comparison.failure is None
    assert comparison.error == NumericError(max_abs=0.0, rel_norm=0.0, rho=None)


def test_the_worst_of_each_figure_is_kept_and_nan_is_the_worst() -> None:
    errors = [
        NumericError(max_abs=1.0, rel_norm=0.5, rho=None),
        NumericError(max_abs=0.5, rel_norm=math.nan, rho=2.0),
    ]
    assert worst(errors) == NumericError(max_abs=1.0, rel_norm=math.inf, rho=2.0)
    assert worst([]) == NumericError(max_abs=0.0, rel_norm=0.0, rho=None)


def test_an_output_that_ignores_its_input_is_constant() -> None:
    first = torch.rand(4, 4)
    assert constant_output([first, first.clone(), first + 1e-6])
    assert not constant_output([first, first.clone(), first + 0.5])
    assert constant_output([torch.zeros(3, 3)])
    assert constant_output([1e-9 * torch.rand(4, 4), 1e-9 * torch.rand(4, 4)])
    assert not constant_output([first])
    assert not constant_output([])
    assert not constant_output([torch.ones(2), torch.ones(3)])
    assert not constant_output([torch.tensor(3.0)])
