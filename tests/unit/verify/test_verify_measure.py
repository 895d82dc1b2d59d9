"""Chunks of measuring, and what is left to judge by where there is no float64 reference."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.verify import measure as measuring
from kopt.actors.verify.compare import compare_outputs
from kopt.ladder import LADDERS


def test_a_large_tensor_is_seen_whole_in_pieces_that_fit_a_cache() -> None:
    count = 3 * measuring.CPU_CHUNK_ELEMENTS + 5
    tensor = torch.arange(count, dtype=torch.float32)
    pieces = list(measuring.chunks(tensor.view(1, -1), tensor.view(1, -1)))
    assert [start for start, _ in pieces] == [
        index * measuring.CPU_CHUNK_ELEMENTS for index in range(4)
    ]
    assert torch.equal(torch.cat([left for _, (left, _) in pieces]), tensor)
    assert max(left.numel() for _, (left, _) in pieces) == measuring.CPU_CHUNK_ELEMENTS


def test_the_figures_of_a_large_tensor_are_those_of_its_elements() -> None:
    count = 2 * measuring.CPU_CHUNK_ELEMENTS
    reference = torch.ones(count)
    candidate = reference.clone()
    candidate[0], candidate[-1] = 4.0, 5.0  # off by 3 and 4: a norm of 5
    found = measuring.measure(candidate, reference=reference, ref64=reference.double(), rtol=0.5)
    assert found.distances.candidate == 4.0
    assert found.distances.excess == 3.5
    assert found.candidate_norm == 5.0
    assert found.scale_norm == pytest.approx(count**0.5)


def test_a_view_of_a_large_tensor_is_read_in_its_own_order() -> None:
    base = torch.arange(400 * 200).view(400, 200)
    turned = base.T
    pieces = torch.cat([piece for _, (piece,) in measuring.chunks(turned)])
    assert torch.equal(pieces, turned.reshape(-1))


@pytest.mark.parametrize("name", ["strict", "tf32"])
def test_without_a_float64_reference_zeros_are_no_answer_to_small_outputs(name) -> None:
    reference = torch.full((8, 64), 2e-5)
    judged = compare_outputs(
        torch.zeros(8, 64), reference=reference, ref64=reference, ladder=LADDERS[name]
    )
    assert judged.failure is not None
    assert "norm of candidate - reference" in judged.failure


def test_without_a_float64_reference_rounding_passes() -> None:
    reference = torch.full((8, 64), 2e-5)
    judged = compare_outputs(
        reference * (1 + 2**-20), reference=reference, ref64=reference, ladder=LADDERS["strict"]
    )
    assert judged.failure is None


def test_without_a_float64_reference_a_zero_output_may_hold_a_trace_of_rounding() -> None:
    reference = torch.zeros(8, 64)
    judged = compare_outputs(
        torch.full((8, 64), 1e-9), reference=reference, ref64=reference, ladder=LADDERS["strict"]
    )
    assert judged.failure is None
