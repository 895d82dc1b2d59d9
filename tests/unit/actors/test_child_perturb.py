"""Fresh content for timed calls: both sides draw the same, and the output before decides."""

from __future__ import annotations

from itertools import islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kopt.actors.child.perturb import (
    MAX_ELEMENTS,
    MODULUS,
    Perturbation,
    Turn,
    apply,
    perturbation,
    place,
    turns,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.integers(0, 5_000), max_size=4), st.integers(0, 2**32), INT64)
def test_what_is_drawn_lies_within_bounds_whatever_the_digest(sizes, seed, digest) -> None:
    for turn in islice(turns([0, 4], seed=seed), 8):
        assert turn.number in (0, 4)
        change = perturbation(turn, sizes, digest=digest)
        if change is None:
            assert all(size <= 1 for size in sizes)
            continue
        assert 1 <= change.length <= MAX_ELEMENTS
        assert 0 <= change.at <= sizes[change.leaf] - change.length
        assert 0 <= change.source <= sizes[change.leaf] - change.length


def test_equal_seeds_draw_alike_and_others_otherwise() -> None:
    drawn = [list(islice(turns([1, 2, 3], seed=seed), 16)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_another_output_before_gives_another_input() -> None:
    turn = next(turns([0], seed=5))
    changes = {perturbation(turn, [1 << 20], digest=digest) for digest in range(64)}
    assert len(changes) == 64


@given(st.integers(1, MODULUS - 1), st.integers(1, MODULUS - 1), INT64, st.integers(1, 1 << 40))
def test_a_device_finds_the_same_place_in_64_bits(a, b, digest, room) -> None:
    on_device = (torch.tensor(digest).remainder(MODULUS) * a + b).remainder(MODULUS)
    assert int(on_device.remainder(room)) == place((a, b), digest, room)


def test_the_place_is_a_line_through_the_digest() -> None:
    assert place((3, 4), 5, 100) == 19
    assert place((3, 4), 5, 10) == 9
    assert place((3, 4), -1, 1 << 40) == ((MODULUS - 1) * 3 + 4) % MODULUS


def test_one_element_in_256_is_changed_of_the_tensor_that_is_drawn() -> None:
    turn = Turn(number=0, leaf_share=0.5, at=(1, 0), source=(1, 7))
    assert perturbation(turn, [1, 512, 1, 2_560], digest=20) == Perturbation(
        leaf=3, at=20, source=27, length=10
    )


def test_a_stretch_is_overwritten_by_another() -> None:
    tensor = torch.arange(12.0).view(3, 4)
    held = apply([tensor], Perturbation(leaf=0, at=5, source=1, length=2))
    assert tensor.view(-1).tolist() == [0, 1, 2, 3, 4, 1, 2, 7, 8, 9, 10, 11]
    assert held.tolist() == [5, 6]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_stretches_that_overlap_are_copied_as_if_they_did_not(at) -> None:
    tensor = torch.arange(6.0)
    apply([tensor], Perturbation(leaf=0, at=at, source=2 - at, length=4))
    expected = list(range(6))
    expected[at : at + 4] = range(2 - at, 6 - at)
    assert tensor.tolist() == expected
