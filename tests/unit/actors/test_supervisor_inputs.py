"""Input sets: a checksum that sees a bit, a copy as a timed call was given it, numbers in trees."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.child.memory import DTYPES, SharedTensor, spec_of
from kopt.actors.child.perturb import Perturbation
from kopt.actors.supervisor.inputs import JudgedSet, checksum, perturbed, renumber


def judged(*tensors: torch.Tensor) -> JudgedSet:
    shared = [SharedTensor(spec_of(tensor)) for tensor in tensors]
    for each, tensor in zip(shared, tensors, strict=True):
        each.tensor.copy_(tensor)
        each.seal()
    return JudgedSet(
        name="own#0",
        state=0,
        seed=5,
        tree={"list": [{"tensor": number} for number in range(len(tensors))]},
        tensors=shared,
        checksum=checksum([each.tensor for each in shared]),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_checksum_sees_one_element_of_any_dtype(dtype) -> None:
    tensor = torch.zeros(64, dtype=torch.float32).to(DTYPES[dtype])
    before = checksum([tensor])
    assert checksum([tensor.clone()]) == before
    tensor.view(torch.uint8)[-1] = 1
    assert checksum([tensor]) != before


def test_a_checksum_tells_negative_zero_and_the_order_of_tensors() -> None:
    one, other = torch.tensor([0.0, 1.0]), torch.tensor([-0.0, 1.0])
    assert checksum([one]) != checksum([other])
    assert checksum([one, other]) != checksum([other, one])


def test_a_checksum_takes_scalars_and_empty_tensors() -> None:
    assert checksum([torch.empty(0)]) == checksum([]) == 0
    assert checksum([torch.tensor(3.0)]) != checksum([torch.tensor(4.0)])


def test_a_perturbed_copy_leaves_the_drawn_set_as_it_is() -> None:
    drawn = judged(torch.arange(8.0), torch.arange(3))
    change = Perturbation(leaf=0, at=0, source=6, length=2)
    given = perturbed(drawn, change, seed=11)
    first, second = given.arguments()
    assert first.tolist() == [6, 7, 2, 3, 4, 5, 6, 7]
    assert second.tolist() == [0, 1, 2]
    assert drawn.arguments()[0].tolist() == list(range(8))
    assert given.seed == 11
    assert given.checksum != drawn.checksum
    assert all(each.is_sealed for each in given.tensors)
    assert perturbed(drawn, None, seed=1).checksum == drawn.checksum


def test_a_tree_is_renumbered_and_nothing_else_of_it_changes() -> None:
    tree = {"list": [{"tensor": 1}, {"value": "tensor"}, {"dict": [[{"value": 0}, {"tensor": 0}]]}]}
    assert renumber(tree, [40, 41]) == {
        "list": [{"tensor": 41}, {"value": "tensor"}, {"dict": [[{"value": 0}, {"tensor": 40}]]}]
    }
