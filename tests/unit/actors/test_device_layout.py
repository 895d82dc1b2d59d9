"""A layout tells where each byte of a tensor lies, in few dimensions and large pieces."""

from __future__ import annotations

import itertools
from dataclasses import astuple

import torch
from hypothesis import given
from hypothesis import strategies as st

from kopt.actors.devices.layout import Layout, layout_of


def told(tensor: torch.Tensor) -> tuple[int, list[int], list[int]]:
    return astuple(layout_of(tensor, min_dimensions=1))


def test_dimensions_that_lie_one_after_the_other_are_one() -> None:
    tensor = torch.empty(2, 3, 4, 5, dtype=torch.complex128)  # pieces as large as they may be
    assert told(tensor) == (16, [120], [1])
    assert told(tensor[:, :2]) == (16, [2, 40], [60, 1])
    assert told(tensor[..., 1:]) == (16, [24, 4], [5, 1])
    assert layout_of(tensor[:, :2], min_dimensions=4).sizes == [1, 1, 2, 40]
    alone = Layout(piece_bytes=16, sizes=[1, 1], strides=[0, 0])
    assert layout_of(tensor[0, 0, 0, 0], min_dimensions=2) == alone


def test_neighbours_that_are_always_together_are_one_piece() -> None:
    rows = torch.empty(8, 24)
    assert told(rows[:, :20]) == (16, [8, 5], [6, 1])
    assert told(rows[:, :6]) == (8, [8, 3], [12, 1])  # 24 bytes: not in sixteens
    assert told(rows[:, :5]) == (4, [8, 5], [24, 1])
    assert told(rows[:, 2:8]) == (8, [8, 3], [12, 1])  # 8 bytes on: not at sixteens
    assert told(rows[:, 1:7]) == (4, [8, 6], [24, 1])
    assert told(rows[:, ::2]) == (4, [96], [2])
    assert told(torch.empty(8, 25)[:, :20]) == (4, [8, 20], [25, 1])
    assert told(rows.bool()[:, :16]) == (8, [8, 2], [3, 1])


@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    dtype=st.sampled_from([torch.uint8, torch.int16, torch.int32, torch.int64]),
    data=st.data(),
)
def test_pieces_in_their_order_are_the_bytes_in_theirs(shape, dtype, data) -> None:
    whole = torch.randint(0, 100, shape).to(dtype)
    places = []
    for size in shape:
        start = data.draw(st.integers(0, size - 1))
        places.append(
            slice(start, data.draw(st.integers(start + 1, size)), data.draw(st.integers(1, 2)))
        )
    tensor = whole[tuple(places)]
    layout = layout_of(tensor, min_dimensions=3)
    memory = whole.view(-1).view(torch.uint8)
    first = tensor.data_ptr() - whole.data_ptr()
    found = []
    for index in itertools.product(*map(range, layout.sizes)):
        at = sum(place * stride for place, stride in zip(index, layout.strides, strict=True))
        begin = first + at * layout.piece_bytes
        found += memory[begin : begin + layout.piece_bytes].tolist()
    gathered = torch.empty(tensor.shape, dtype=dtype).copy_(tensor)
    assert found == gathered.view(-1).view(torch.uint8).tolist()
    assert layout.num_pieces * layout.piece_bytes == tensor.numel() * tensor.element_size()
