"""Which inputs are said to matter everywhere: never one that a kernel may read in part."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from kopt.actors.child import depends
from kopt.actors.child.depends import inputs_that_matter
from kopt.actors.child.influence import Call
from kopt.actors.child.precision import in_float64

FUNCTIONS = {
    "a sum": (lambda x, y: (x + y).sum(), ["surely", "surely"]),
    "a maximum with 0": (lambda x, y: torch.relu(x) + y, ["surely", "surely"]),
    "a product": (lambda x, y: x @ y.t(), ["surely", "surely"]),
    "an input left aside": (lambda x, y: x * 2, ["surely", "partly"]),
    "a column": (lambda x, y: x[:, :1] + y, ["partly", "surely"]),
    "every fourth element": (lambda x, y: x.view(-1)[::4].sum() + y, ["partly", "surely"]),
    "a triangle": (lambda x, y: torch.tril(x) + y, ["partly", "surely"]),
    "a constant": (lambda x, y: torch.zeros(3), ["partly", "partly"]),
}

SIZE = 1 << 14
"""Elements of which float32 sums lose the change of one: 1 / SIZE of the mean of many."""
REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a mean far from 0": lambda x: (x + 65536.0).mean(),
    "a sum far from 0": lambda x: (x + 65536.0).sum(),
    "a logarithm of a sum": lambda x: torch.logsumexp(0.1 * x, dim=0),
    "the greatest": lambda x: x.max(),
    "the least": lambda x: x.min(),
    "the place of the greatest": lambda x: x.argmax(),
    "a median": lambda x: x.quantile(0.5),
    "a sum of squares": lambda x: (x.square() + 100.0).sum(),
    "a mean of what is above 0": lambda x: torch.relu(x + 9.0).mean() + 100.0,
}


@pytest.fixture(autouse=True)
def _has_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depends, "LIMIT_S", 60.0)


def found(
    function: Callable[..., object], *tensors: torch.Tensor, has_float64: bool = True
) -> list[str]:
    """What is said of the inputs of a function, which are as before afterwards."""
    before = [each.clone() for each in tensors]

    def exact() -> Call:
        doubled = in_float64(list(tensors))
        assert isinstance(doubled, list)
        return Call(lambda: function(*doubled), doubled)

    own = Call(lambda: function(*tensors), tensors)
    answer = inputs_that_matter(own, exact=exact if has_float64 else None, seed=4)
    assert all(map(torch.equal, tensors, before))
    return answer


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def labels(number: int, *, below: int) -> torch.Tensor:
    return torch.randint(below, (number,), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_input_matters_where_every_element_does(name) -> None:
    function, expected = FUNCTIONS[name]
    assert found(function, normal(64, 64), normal(128, 64)[64:].clone()) == expected


@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_that_is_reduced_to_one_number_matters_though_rounding_hides_each(name) -> None:
    assert found(REDUCTIONS[name], normal(SIZE)) == ["surely"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_and_labels_of_a_mean_loss_matter(dtype) -> None:
    scores = normal(SIZE // 16, 16).to(dtype)
    mean = functional.cross_entropy
    assert found(mean, scores, labels(SIZE // 16, below=16)) == ["surely", "surely"]


def test_what_is_masked_out_of_a_mean_does_not_matter() -> None:
    kept = torch.arange(SIZE) % 4 == 0
    answer = found(lambda x, mask: (x[mask] + 65536.0).mean(), normal(SIZE), kept)
    assert answer == ["partly", "likely"]  # elements of one byte are not tried


def test_what_a_mask_of_numbers_lets_through_is_seen_element_by_element() -> None:
    mask = (torch.arange(SIZE) % 4 == 0).float()
    assert found(lambda x, m: (x * m).mean() + 100.0, normal(SIZE), mask) == ["partly", "surely"]


def test_weights_too_small_to_tell_in_the_outputs_precision_do_not_count() -> None:
    # 1e-12 of each of 4096 elements is far below float32's rounding of what it is added to.
    assert found(lambda x, y: x + 1e-12 * y, normal(4096), normal(4096)) == ["surely", "partly"]
    assert found(lambda x, y: x.sum() + 1e-12 * y.sum(), normal(4096) + 3, normal(4096)) == [
        "surely",
        "partly",
    ]


def test_what_rounding_lets_pass_by_chance_does_not_count() -> None:
    # One in five of such changes is seen in float32; together they are no more than each.
    answer = found(lambda x, y: x + 1e-8 * y, 1.0 + normal(4096).abs(), normal(4096))
    assert answer == ["surely", "partly"]


def test_labels_are_only_replaced_by_labels() -> None:
    answer = found(
        lambda scores, label: functional.nll_loss(scores, label, reduction="none"),
        normal(64, 5),
        labels(64, below=5),
    )
    assert answer == ["partly", "surely"]


def test_inputs_of_one_element_or_byte_are_not_tried() -> None:
    tensors = [torch.tensor([2.0]), torch.ones(9, dtype=torch.bool), torch.empty(0)]
    assert found(lambda x, y, z: x * y.sum(), *tensors) == ["likely"] * 3


def test_what_there_is_no_time_for_is_not_known(monkeypatch) -> None:
    monkeypatch.setattr(depends, "LIMIT_S", -1.0)
    monkeypatch.setattr(depends, "LIMIT_CALLS", 0)
    assert found(lambda x: x * 2, normal(64)) == ["unknown"]


def test_what_there_was_some_time_for_likely_matters(monkeypatch) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: 0.1 * next(ticks))
    monkeypatch.setattr(depends, "time", clock)
    monkeypatch.setattr(depends, "LIMIT_S", 0.5)
    # Two calls in 0.1 s: twelve may take 0.6 s, so four or five elements are tried of eight.
    assert found(lambda x: x * 2, normal(64)) == ["likely"]


def test_what_rounding_may_hide_is_not_known_without_float64() -> None:
    assert found(REDUCTIONS["a mean far from 0"], normal(SIZE), has_float64=False) == ["unknown"]


def test_where_equal_calls_differ_nothing_is_said_to_matter_by_that_alone() -> None:
    signs = iter([1.0, -1.0] * 500)
    answer = found(lambda x, y: x.sum() + 10.0 * next(signs), normal(64), normal(64))
    assert answer == ["unknown", "unknown"]


def test_what_stands_out_of_the_noise_of_equal_calls_matters() -> None:
    # Of rounding in an order that changes, such as atomic additions make.
    signs = iter([1.0, -1.0] * 500)
    answer = found(lambda x, y: x + 1e-9 * next(signs), normal(64), normal(64))
    assert answer == ["surely", "unknown"]


def test_outputs_whose_size_hangs_on_the_values_are_others_where_it_changes() -> None:
    assert found(lambda x: x[x > x.mean()], normal(64)) == ["surely"]
