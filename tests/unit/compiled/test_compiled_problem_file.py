from typing import Any

import pytest
import torch

from kopt.actors.compiled.fragments import Fragment, NotCut
from kopt.actors.compiled.problem_file import identity_of, problem_source
from kopt.actors.rewriter.emit import Body
from kopt.compiled.groups import Group
from kopt.data.problems.contract import contract_errors


def fragment(*inputs: str) -> Fragment:
    group = Group(places=(0,), kernels=("k",), reads=inputs, results=("r",), why="")
    body = Body(lines=("y = x0 + x0",), results=("y",))
    return Fragment(group=group, inputs=inputs, body=body, operations=("add",))


def drawn(seen: torch.Tensor) -> torch.Tensor:
    source = problem_source(fragment("a"), {"a": seen})
    assert contract_errors(source) == []
    names: dict[str, Any] = {}
    exec(source, names)
    torch.manual_seed(0)
    (made,) = names["get_inputs"]()
    assert (made.shape, made.dtype, made.stride()) == (seen.shape, seen.dtype, seen.stride())
    return made


def test_inputs_are_drawn_with_the_size_strides_and_spread_that_were_seen() -> None:
    torch.manual_seed(1)
    made = drawn(torch.randn(64, 64) * 3 + 10)
    assert 9 < float(made.mean()) < 11
    assert 2.5 < float(made.std()) < 3.5
    drawn(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last))
    drawn(torch.randn(8, 8).to(torch.bfloat16))


def test_what_was_never_negative_is_not_drawn_negative() -> None:
    assert float(drawn(torch.rand(100) * 5).min()) >= 0


def test_weights_that_are_all_alike_are_not_drawn_alike() -> None:
    made = drawn(torch.ones(32))
    assert float(made.std()) > 0.01
    assert float(made.min()) >= 1.0


def test_whole_numbers_stay_in_their_range_and_bools_keep_their_share() -> None:
    made = drawn(torch.tensor([3, 7, 5]))
    assert set(made.tolist()) <= {3, 4, 5, 6, 7}
    share = float(drawn(torch.arange(1000) < 900).float().mean())
    assert 0.8 < share < 1.0


def test_values_that_are_not_finite_cannot_be_drawn() -> None:
    with pytest.raises(NotCut, match="not finite"):
        problem_source(fragment("a"), {"a": torch.tensor([1.0, float("-inf")])})


def test_problems_that_differ_in_values_alone_are_the_same() -> None:
    small, large = torch.randn(4, 4), torch.randn(4, 4) * 100
    first = problem_source(fragment("a"), {"a": small})
    second = problem_source(fragment("a"), {"a": large})
    assert first != second
    assert identity_of(first, [small]) == identity_of(second, [large])
    assert identity_of(first, [small]) != identity_of(first, [torch.randn(4, 5)])
