"""The chain of timed calls: each input depends on the output before, all is kept and put back."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.child.chain import Chain, commitment
from kopt.actors.child.content import HostContent
from kopt.actors.child.digest import digest, memory_order, tensors_in, word_sum
from kopt.actors.child.perturb import apply, perturbation

KEY = 1_234
"""Of the blocks."""


def word(*numbers: float) -> int:
    """The digest of float32 numbers, by their bytes."""
    raw = torch.tensor(numbers).view(torch.uint8).tolist()
    words = [raw[at : at + 8] for at in range(0, len(raw) - len(raw) % 8, 8)]
    total = sum(int.from_bytes(bytes(each), "little", signed=True) for each in words)
    return total + sum(raw[len(raw) - len(raw) % 8 :])


def test_a_digest_is_the_sum_of_words_and_of_the_bytes_left() -> None:
    assert int(word_sum(torch.tensor([1, -3, 5]))) == 3
    assert int(word_sum(torch.tensor([1, 2, 255], dtype=torch.uint8))) == 258
    assert int(word_sum(torch.tensor([1.5, 2.5]))) == word(1.5, 2.5)
    assert int(word_sum(torch.tensor([1.5, 2.5, -3.5]))) == word(1.5, 2.5, -3.5)
    assert int(word_sum(torch.tensor(2.0))) == 0x40  # one float32: bytes 0, 0, 0, 0x40
    assert int(word_sum(torch.empty(0))) == 0


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "bfloat16", "int8", "bool", "complex64", "float8_e4m3fn"]
)
def test_every_dtype_and_every_place_in_memory_has_a_digest(dtype) -> None:
    tensor = (torch.arange(41) % 2).to(getattr(torch, dtype))
    whole = int(word_sum(tensor[1:]))
    assert whole == int(word_sum(tensor[1:].clone()))
    other = tensor[1:].clone()
    other[7:8] = tensor[0:1] if bool(other[7].to(torch.bool)) else tensor[1:2]
    assert int(word_sum(other)) != whole


def test_a_tensor_is_read_as_it_lies_in_memory() -> None:
    assert memory_order(torch.empty(2, 3, 4)) == [0, 1, 2]
    assert memory_order(torch.empty(3, 4).t()) == [1, 0]
    channels_last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert memory_order(channels_last) == [0, 2, 3, 1]
    assert memory_order(torch.empty(4, 8)[:, :5].t()) == [0, 1]  # it has holes
    flat = channels_last.permute(0, 2, 3, 1).reshape(-1)
    assert int(digest([channels_last])) == int(word_sum(flat))


@pytest.mark.parametrize("shape", [(6, 5), (3, 8), (300, 300), (5, 70_000), (2, 600, 600)])
@pytest.mark.parametrize("gap", [0, 1, 4])
def test_rows_with_gaps_have_the_digest_of_the_same_rows_without(shape, gap) -> None:
    wide = torch.randn(*shape[:-1], shape[-1] + gap)
    rows = wide[..., : shape[-1]]
    assert int(word_sum(rows)) == int(word_sum(rows.clone(memory_format=torch.contiguous_format)))


def test_outputs_are_found_in_the_order_that_they_are_numbered_in() -> None:
    one, two, three = torch.zeros(1), torch.zeros(2), torch.zeros(3)
    tree = {"b": [one, (2.0, two)], "a": three, "c": None}
    assert [each.numel() for each in tensors_in(tree)] == [3, 1, 2]
    assert int(digest([])) == 0


def run(chain: Chain, tensors: list[torch.Tensor], *, count: int) -> list[torch.Tensor]:
    """Make the calls of a chain, each giving twice its input; return the inputs as they were."""
    seen = []
    for position in range(count):
        chain.before_call(position)
        seen.append(tensors[0].clone())
        chain.after_call(tensors[0] * 2)
    return seen


def test_each_input_follows_from_the_output_before() -> None:
    drawn = torch.randn(4_096)
    tensor = drawn.clone()
    chain = Chain(HostContent({3: [tensor]}, key=KEY), [3], seed=9, count=4)
    seen = run(chain, [tensor], count=4)
    digests = chain.end()
    assert torch.equal(tensor, drawn)
    last = KEY
    for turn, given, found in zip(chain.turns, seen, digests, strict=True):
        change = perturbation(turn, [4_096], digest=last)
        assert change is not None
        expected = drawn.clone()
        apply([expected], change)
        assert torch.equal(given, expected)
        last = int(digest([given * 2]))
        assert found == last
    assert all(torch.equal(out, given * 2) for out, given in zip(chain.outputs, seen, strict=True))


def test_another_output_changes_every_input_after_it() -> None:
    inputs = []
    for offset in (0.0, 1.0):
        tensor = torch.linspace(0, 1, 4_096)
        chain = Chain(HostContent({0: [tensor]}, key=KEY), [0], seed=1, count=3)
        for position in range(3):
            chain.before_call(position)
            inputs.append(tensor.clone())
            chain.after_call(tensor + (offset if position == 0 else 0.0))
        chain.end()
    assert torch.equal(inputs[0], inputs[3])
    assert not torch.equal(inputs[1], inputs[4])
    assert not torch.equal(inputs[2], inputs[5])


def test_inputs_of_one_element_and_outputs_without_a_tensor_have_a_chain_too() -> None:
    tensor = torch.tensor([5.0])
    chain = Chain(HostContent({0: [tensor, torch.empty(0)]}, key=KEY), [0], seed=1, count=2)
    for position in range(2):
        chain.before_call(position)
        chain.after_call(None)
    assert tensor.tolist() == [5.0]
    assert chain.end() == [0, 0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.permute(0, 2, 1, 3),
        lambda x: x[:, :, 1:3].permute(0, 2, 3, 1),
        lambda x: x[..., 1:].transpose(1, 2),
        lambda x: x[:, ::2].transpose(0, 3),
        lambda x: x[:1, :, :, :1].expand(3, -1, -1, 4),
        lambda x: x.to(torch.complex64).conj()[:, :, 1:].transpose(1, 3),
    ],
)
def test_copies_of_views_have_the_digests_of_what_they_were_made_of(view) -> None:
    tensor = torch.arange(960.0).view(4, 6, 5, 8)
    chain = Chain(HostContent({0: [tensor]}, key=KEY), [0], seed=1, count=20, copies=True)
    for position in range(20):
        chain.before_call(position)
        chain.after_call((view(tensor), {"same": view(tensor)}))
    kept = [int(digest(tensors_in(out))) for out in chain.outputs]
    assert kept == chain.end()
    assert len(set(kept)) > 1, "each call was given something else"


def test_another_key_changes_every_input() -> None:
    seen = []
    for key in (KEY, KEY + 1):
        tensor = torch.linspace(0, 1, 4_096)
        chain = Chain(HostContent({0: [tensor]}, key=key), [0], seed=1, count=2)
        seen.append(run(chain, [tensor], count=2))
    assert not any(torch.equal(one, other) for one, other in zip(*seen, strict=True))


def test_a_commitment_stands_for_all_digests_in_order() -> None:
    assert commitment([1, 2]) == commitment([1, 2])
    assert commitment([1, 2]) != commitment([2, 1])
    assert commitment([]) == commitment([])
    assert commitment([-(1 << 63), (1 << 63) - 1])
