"""Which inputs are said to matter everywhere: never one that a kernel may read in part."""

from __future__ import annotations

import pytest
import torch

from kopt.actors.child import depends
from kopt.actors.child.depends import inputs_that_matter

FUNCTIONS = {
    "a sum": (lambda x, y: (x + y).sum(), [True, True]),
    "a maximum with 0": (lambda x, y: torch.relu(x) + y, [True, True]),
    "a product": (lambda x, y: x @ y.t(), [True, True]),
    "an input left aside": (lambda x, y: x * 2, [True, False]),
    "a column": (lambda x, y: x[:, :1] + y, [False, True]),
    "every fourth element": (lambda x, y: x.view(-1)[::4].sum() + y, [False, True]),
    "a triangle": (lambda x, y: torch.tril(x) + y, [False, True]),
    "a constant": (lambda x, y: torch.zeros(3), [False, False]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_input_matters_where_every_element_does(name) -> None:
    function, expected = FUNCTIONS[name]
    torch.manual_seed(3)
    tensors = [torch.randn(64, 64), torch.randn(64, 64)]
    before = [each.clone() for each in tensors]
    found = inputs_that_matter(lambda: function(*tensors), tensors, seed=4)
    assert found == expected
    assert all(map(torch.equal, tensors, before))


def test_labels_are_only_replaced_by_labels() -> None:
    torch.manual_seed(3)
    scores, labels = torch.randn(64, 5), torch.randint(5, (64,))
    found = inputs_that_matter(
        lambda: torch.nn.functional.nll_loss(scores, labels, reduction="none"),
        [scores, labels],
        seed=1,
    )
    assert found == [False, True]


def test_inputs_of_one_element_or_byte_are_not_said_to_matter() -> None:
    tensors = [torch.tensor([2.0]), torch.ones(9, dtype=torch.bool), torch.empty(0)]
    assert inputs_that_matter(lambda: tensors[0] * tensors[1].sum(), tensors, seed=1) == [False] * 3


def test_what_there_is_no_time_for_is_not_said_to_matter(monkeypatch) -> None:
    monkeypatch.setattr(depends, "LIMIT_S", -1.0)
    tensor = torch.randn(64)
    assert inputs_that_matter(lambda: tensor * 2, [tensor], seed=1) == [False]
