"""Ladders: a table by hand of what passes, and the flags they pin."""

from __future__ import annotations

import math

import pytest

from kopt.ladder import LADDER_NAMES, LADDERS, Distances, failure, rho, tolerances


def at(candidate: float, reference: float = 1e-6, scale: float = 1.0, excess: float = 0.0):
    return Distances(candidate=candidate, reference=reference, scale=scale, excess=excess)


@pytest.mark.parametrize(
    ("ladder", "distances", "passes"),
    [
        # ρ decides alone where it is required
        ("strict", at(10.0, reference=1.0), True),
        ("strict", at(1.01e-5), False),
        ("strict", at(5e-6, excess=1.0), True),
        ("strict", at(4e-3), False),
        ("tf32", at(10.0, reference=1.0), True),
        # the absolute bound: max(5e-3, 1e-3 · scale)
        ("tf32", at(4.9e-3), True),
        ("tf32", at(5.1e-3), False),
        ("tf32", at(0.9, scale=1_000.0), True),
        ("tf32", at(1.1, scale=1_000.0), False),
        # the degenerate case: 1e-4 of the scale decides, or 10 times a tiny error of the reference
        ("strict", at(0.9e-4, reference=0.0), True),
        ("strict", at(1.1e-4, reference=0.0), False),
        ("strict", at(0.9e-9, reference=0.0, scale=1e-5), True),
        ("strict", at(1.1e-9, reference=0.0, scale=1e-5), False),
        # allclose against the reference where ρ is not required
        ("loose", at(1.0, excess=1e-2), True),
        ("loose", at(1.0, excess=1.1e-2), False),
        ("loose", at(4e-3, excess=1.1e-2), True),
        ("kernelbench", at(1.0, excess=1e-4), True),
        ("kernelbench", at(4e-3, excess=1.1e-4), False),
        # what is not finite passes nowhere
        ("loose", at(math.inf), False),
        ("kernelbench", at(math.nan), False),
        ("tf32", at(math.inf), False),
    ],
)
def test_the_table_of_what_passes(ladder, distances, passes) -> None:
    assert (failure(distances, LADDERS[ladder]) is None) is passes


def test_the_reason_names_the_figures() -> None:
    reason = failure(at(2e-5), LADDERS["strict"])
    assert reason is not None
    assert "20 times the reference's own 1e-06" in reason


def test_the_ratio_is_unknown_where_the_reference_is_exact() -> None:
    assert rho(at(3e-6)) == pytest.approx(3.0)
    assert rho(at(3e-6, reference=0.9e-8)) is None
    assert rho(at(3e-8, reference=1e-8)) == pytest.approx(3.0)


def test_half_precision_is_wider_on_kernelbench_alone() -> None:
    assert tolerances(LADDERS["kernelbench"], half=True) == (1e-2, 1e-2)
    assert tolerances(LADDERS["kernelbench"], half=False) == (1e-4, 1e-4)
    assert tolerances(LADDERS["strict"], half=True) == (1e-3, 1e-3)


def test_every_name_has_its_ladder_and_only_tf32_turns_matmul_tf32_on() -> None:
    assert tuple(LADDERS) == LADDER_NAMES
    assert all(ladder.name == name for name, ladder in LADDERS.items())
    assert [ladder.name for ladder in LADDERS.values() if ladder.matmul_tf32] == ["tf32"]
    assert all(ladder.cudnn_tf32 for ladder in LADDERS.values())
    bounded = [ladder.name for ladder in LADDERS.values() if ladder.absolute_bound]
    assert bounded == ["tf32", "loose"]
