"""Fresh content for timed calls: both sides draw the same, values stay, all is put back."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kopt.actors.child.perturb import (
    MAX_ELEMENTS,
    Perturbation,
    Perturber,
    apply,
    perturbations,
    restore,
)


@given(st.lists(st.integers(0, 5_000), max_size=4), st.integers(0, 2**32))
def test_child_and_supervisor_draw_the_same_within_bounds(sizes, seed) -> None:
    ours = list(islice(perturbations(sizes, seed=seed), 8))
    assert ours == list(islice(perturbations(sizes, seed=seed), 8))
    for change in ours:
        if change is None:
            assert all(size <= 1 for size in sizes)
            continue
        assert 1 <= change.length <= MAX_ELEMENTS
        assert 0 <= change.at <= sizes[change.leaf] - change.length
        assert 0 <= change.source <= sizes[change.leaf] - change.length


def test_other_seeds_draw_otherwise() -> None:
    drawn = [list(islice(perturbations([10_000], seed=seed), 4)) for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_a_stretch_is_overwritten_by_another_and_put_back() -> None:
    tensor = torch.arange(12.0).view(3, 4)
    change = Perturbation(leaf=0, at=5, source=1, length=2)
    held = apply([tensor], change)
    assert tensor.view(-1).tolist() == [0, 1, 2, 3, 4, 1, 2, 7, 8, 9, 10, 11]
    restore([tensor], change, held)
    assert tensor.view(-1).tolist() == list(range(12))


def test_stretches_that_overlap_are_copied_as_if_they_did_not() -> None:
    tensor = torch.arange(6.0)
    apply([tensor], Perturbation(leaf=0, at=1, source=0, length=4))
    assert tensor.tolist() == [0, 0, 1, 2, 3, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_a_perturber_changes_one_stretch_and_settles_to_what_was_drawn(dtype) -> None:
    drawn = (torch.arange(4_096) % 7).to(dtype)
    tensor = drawn.clone()
    perturber = Perturber({3: [tensor]}, seed=9)
    expected = islice(perturbations([4_096], seed=9 + 3), 5)
    for change in expected:
        perturber.before_call(3)
        copy = drawn.clone()
        assert change is not None
        apply([copy], change)
        assert torch.equal(tensor, copy)
    perturber.settle(3)
    assert torch.equal(tensor, drawn)
    perturber.settle(3)
    assert torch.equal(tensor, drawn)


def test_inputs_of_one_element_each_are_left_alone() -> None:
    tensor = torch.tensor([5.0])
    perturber = Perturber({0: [tensor, torch.empty(0)]}, seed=1)
    perturber.before_call(0)
    assert tensor.tolist() == [5.0]
