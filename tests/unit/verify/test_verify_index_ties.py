"""Index outputs: a tie excuses another index, and nothing else does."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.verify.compare import compare_outputs
from kopt.ladder import LADDERS


def accepted(candidate, reference, *, inputs, ref64=None, ladder="strict") -> bool:
    comparison = compare_outputs(
        candidate,
        reference=reference,
        ref64=reference if ref64 is None else ref64,
        ladder=LADDERS[ladder],
        inputs=inputs,
    )
    return comparison.failure is None


X = torch.tensor([[3.0, 1.0, 3.0, 0.0], [2.0, 2.0, 1.0, 2.0], [0.0, 5.0, 1.0, 2.0]])


def test_an_argmax_may_point_at_any_of_the_equal_maxima() -> None:
    reference = torch.tensor([0, 0, 1])
    assert accepted(torch.tensor([2, 3, 1]), reference, inputs=[X])
    assert not accepted(torch.tensor([1, 3, 1]), reference, inputs=[X])


def test_the_dimension_may_be_kept_or_be_any_or_be_all() -> None:
    assert accepted(torch.tensor([[2], [1], [1]]), torch.tensor([[0], [0], [1]]), inputs=[X])
    columns = X.mT.contiguous()
    assert accepted(torch.tensor([2, 1, 1]), torch.tensor([0, 0, 1]), inputs=[columns])
    assert accepted(torch.tensor(2), torch.tensor(0), inputs=[X])
    assert not accepted(torch.tensor(1), torch.tensor(0), inputs=[X])


def test_an_index_out_of_range_is_no_tie() -> None:
    assert not accepted(torch.tensor([4, 0, 1]), torch.tensor([0, 0, 1]), inputs=[X])
    assert not accepted(torch.tensor([-1, 0, 1]), torch.tensor([0, 0, 1]), inputs=[X])


def test_a_sort_may_order_equal_values_anyhow_but_repeats_no_index() -> None:
    reference = torch.tensor([[0, 2, 1, 3], [0, 1, 3, 2], [1, 3, 2, 0]])
    swapped = torch.tensor([[2, 0, 1, 3], [3, 0, 1, 2], [1, 3, 2, 0]])
    repeated = torch.tensor([[0, 0, 1, 3], [0, 1, 3, 2], [1, 3, 2, 0]])
    assert accepted(swapped, reference, inputs=[X])
    assert not accepted(repeated, reference, inputs=[X])


def test_an_input_that_is_the_same_everywhere_excuses_nothing() -> None:
    reference = torch.tensor([0, 0, 1])
    other = torch.tensor([1, 2, 3])
    assert not accepted(other, reference, inputs=[torch.ones(3, 4)])
    assert not accepted(other, reference, inputs=[torch.ones(3, 4, dtype=torch.int64)])
    assert not accepted(other, reference, inputs=[])


@pytest.mark.parametrize("wrong", [0, 10, 11])
def test_rounding_may_flip_ten_times_as_many_as_it_flipped_in_the_reference(wrong) -> None:
    exact = torch.zeros(10_000, dtype=torch.int64)
    reference, candidate = exact.clone(), exact.clone()
    reference[0] = 1
    candidate[100 : 100 + wrong] = 1
    assert accepted(candidate, reference, inputs=[], ref64=exact) is (wrong <= 10)


def test_rounding_never_flips_more_than_one_in_a_hundred() -> None:
    exact = torch.zeros(1_000, dtype=torch.int64)
    reference, candidate = exact.clone(), exact.clone()
    reference[:500] = 1
    candidate[500:511] = 1
    assert not accepted(candidate, reference, inputs=[], ref64=exact)


def test_a_ladder_without_a_ratio_excuses_no_flip() -> None:
    exact = torch.zeros(10_000, dtype=torch.bool)
    reference, candidate = exact.clone(), exact.clone()
    reference[0] = True
    candidate[1] = True
    assert accepted(candidate, reference, inputs=[], ref64=exact)
    assert not accepted(candidate, reference, inputs=[], ref64=exact, ladder="kernelbench")
