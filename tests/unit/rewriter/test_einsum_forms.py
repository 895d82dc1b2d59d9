"""Sums over one index become products; other sums stay as they are written."""

import pytest
import torch
from torch import fx

from kopt.actors.rewriter.capture import capture
from kopt.actors.rewriter.graph import aten, calls


@pytest.mark.parametrize(
    ("equation", "sizes", "is_product"),
    [
        ("bijl,lk->bijk", ("2, 3, 4, 5", "5, 6"), True),
        ("il , kl -> ik", ("3, 5", "6, 5"), True),
        ("il,lk->ki", ("3, 5", "5, 6"), False),
        ("bil,blk->bik", ("2, 3, 5", "2, 5, 6"), False),
        ("il,kl->i", ("3, 5", "6, 5"), False),
        ("il,li->il", ("3, 5", "5, 3"), False),
        ("...l,lk->...k", ("2, 3, 5", "5, 6"), False),
    ],
)
def test_a_sum_over_the_last_index_of_one_tensor_is_a_product(
    problem_of, equation, sizes, is_product
) -> None:
    problem = problem_of(
        f"return torch.einsum({equation!r}, x, w)",
        inputs=[f"torch.randn({each})" for each in sizes],
        names="x, w",
    )
    graph = capture(problem, mode="train").graph
    targets = {node.target for node in calls(graph)}
    assert (aten.linear.default in targets) is is_product
    assert (aten.einsum.default in targets) is not is_product
    inputs = [torch.randn(*map(int, each.split(",")), dtype=torch.float64) for each in sizes]
    [found] = fx.Interpreter(graph).run(*inputs)
    torch.testing.assert_close(found, torch.einsum(equation, *inputs))
