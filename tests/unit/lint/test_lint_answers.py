"""Trivial answers, their comparison, and what of an input is changed."""

import pytest
import torch

from kopt.actors.child.memory import SharedTensor, spec_of
from kopt.actors.lint.answers import (
    fitted,
    fitted_mean,
    mapped,
    passes,
    repeated,
    returned,
    rounded,
    stored,
    tensors_of,
    unchanged,
    zeros,
)
from kopt.actors.lint.reactions import changed_weight
from kopt.actors.lint.sampling import Axis, sampled, sampled_axes
from kopt.actors.supervisor.inputs import JudgedSet
from kopt.ladder import LADDERS

STRICT, LOOSE = LADDERS["strict"], LADDERS["loose"]


def shared(tensor: torch.Tensor) -> SharedTensor:
    made = SharedTensor(spec_of(tensor))
    made.tensor.copy_(tensor)
    return made


def judged(outputs: object, *inputs: torch.Tensor, state: int = 0) -> JudgedSet:
    made = JudgedSet(
        name="own#0",
        state=state,
        seed=0,
        tree={"list": [{"tensor": n} for n in range(len(inputs))]},
        tensors=[shared(tensor) for tensor in inputs],
        checksum=0,
    )
    made.outputs = outputs
    made.outputs64 = mapped(
        outputs, lambda leaf, _: leaf.double() if leaf.is_floating_point() else leaf
    )
    return made


def test_trees_keep_their_form() -> None:
    tree = {"b": (torch.ones(2), 3), "a": [torch.zeros(1)]}
    changed = mapped(tree, lambda leaf, position: leaf + position)
    # Leaves go by sorted key: `a` is 0, `b` is 1.
    assert changed["a"][0].tolist() == [0.0]
    assert changed["b"][0].tolist() == [2.0, 2.0]
    assert (type(changed["b"]), changed["b"][1]) == (tuple, 3)
    assert list(changed) == ["b", "a"]


def test_zeros_pass_where_the_output_is_nothing() -> None:
    nothing = judged(torch.zeros(4, 4), torch.ones(4, 4))
    assert passes(zeros(nothing), nothing, ladder=STRICT)
    small = judged(torch.full((100,), 5e-3), torch.ones(100))
    assert not passes(zeros(small), small, ladder=STRICT)
    assert passes(zeros(small), small, ladder=LOOSE)  # below its atol of 1e-2


def test_a_stored_answer_passes_where_inputs_are_not_read() -> None:
    first = judged(torch.tensor([1.0, 2.0]), torch.rand(8))
    second = judged(torch.tensor([1.0, 2.0]), torch.rand(8))
    assert passes(stored({0: first})(second), second, ladder=STRICT)
    assert stored({0: first})(judged(torch.ones(2), state=1)) is None
    assert stored({0: first})(judged(torch.ones(3))) is None


def test_the_mean_is_one_number_for_each_output() -> None:
    tree = (torch.tensor([1.0, 3.0]), torch.tensor([7, 7, 2]), torch.tensor([True, True, False]))
    mean, commonest, majority = fitted_mean({0: judged(tree)})(judged(tree))
    assert mean.tolist() == [2.0, 2.0]
    assert commonest.tolist() == [7, 7, 7]
    assert majority.tolist() == [True, True, True]


def test_the_first_sample_is_repeated_for_all() -> None:
    answer = repeated(judged(torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
    assert answer.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert repeated(judged(torch.tensor(1.0))) is None
    assert repeated(judged(torch.ones(1, 5))) is None


def test_an_input_fits_an_output_by_broadcast_or_by_count() -> None:
    assert fitted(torch.tensor([1.0, 2.0]), torch.ones(3, 2)).shape == (3, 2)
    assert fitted(torch.ones(2, 3), torch.ones(6)).shape == (6,)
    assert fitted(torch.ones(4), torch.ones(3)) is None
    assert fitted(torch.ones(4, dtype=torch.int64), torch.ones(4)) is None


def test_what_is_returned_may_be_an_input_or_a_weight() -> None:
    x = torch.rand(4, 2)
    weights = [{"bias": shared(torch.tensor([5.0, 6.0]))}]
    both = judged((x, torch.tensor([[5.0, 6.0]] * 4)), x)
    answer = returned(["input 0", "bias"], weights)(both)
    assert passes(answer, both, ladder=STRICT)
    assert returned(["input 0", "gone"], weights)(both) is None


def test_rounding_to_bfloat16_is_no_answer_for_what_is_no_float32() -> None:
    # 1 + 2**-9 lies between two bfloat16 numbers and goes to 1.
    assert rounded(judged(torch.tensor([1.0 + 2.0**-9]))).tolist() == [1.0]
    assert rounded(judged(torch.tensor([3]))) is None
    assert rounded(judged(torch.ones(2, dtype=torch.bfloat16))) is None


def test_unchanged_is_to_the_bit() -> None:
    base = judged(torch.tensor([1.0, 2.0]))
    assert unchanged(torch.tensor([1.0, 2.0]), base)
    assert not unchanged(torch.tensor([1.0, 2.0 + 1e-6]), base)
    assert not unchanged(None, base)
    assert len(tensors_of({"a": [torch.ones(1), 2]})) == 1


def test_one_percent_is_taken_along_dimensions_that_are_long_enough() -> None:
    tensors = [torch.ones(1000, 50), torch.ones(1000)]
    assert sampled_axes(tensors) == [Axis(dim=0, size=1000, kept=10)]
    assert sampled_axes([torch.ones(99)]) == []
    assert sampled_axes([]) == []


def test_a_sample_stands_for_all_of_an_input() -> None:
    rows = torch.arange(200.0).reshape(200, 1).expand(200, 3)
    first, second = sampled(judged(torch.ones(1), rows, torch.ones(3)), dim=0)
    # Two rows of 200 are kept, in turn.
    assert first.tensor[:, 0].tolist() == [0.0, 1.0] * 100
    assert second.tensor.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("weight", "changed"),
    [
        (torch.tensor([1.0, 0.0, 0.0]), [0.0, 1.0, 0.0]),  # a mask keeps its values
        (torch.tensor([2.0, 2.0]), [3.0, 3.0]),  # a constant moves by half
        (torch.tensor([0.0, 0.0]), [1.0, 1.0]),
        (torch.tensor([True, True]), [False, False]),
        (torch.tensor([3, 5]), [5, 3]),  # indices stay in range
    ],
)
def test_a_weight_that_is_not_randomised_is_changed_within_reason(weight, changed) -> None:
    assert changed_weight(weight, twin=weight.clone()).tolist() == changed


def test_a_counter_is_left_alone_and_a_twin_is_preferred() -> None:
    counter = torch.tensor(0)
    assert changed_weight(counter, twin=counter.clone()) is None
    assert changed_weight(torch.tensor([2.0]), twin=torch.tensor([1.0])).tolist() == [1.0]
