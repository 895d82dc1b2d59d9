"""How large the blocks of a race are: of equal kernels the same, whatever was seen of them."""

from __future__ import annotations

import pytest

from kopt.actors.supervisor.duel import block_calls


@pytest.mark.parametrize(
    ("mine", "theirs", "both"),
    [(24, 63, (63, 63)), (63, 24, (63, 63)), (5, 5, (5, 5)), (4, 1, (4, 4)), (5, 1, (5, 1))],
)
def test_blocks_that_are_alike_have_the_calls_of_the_larger(mine, theirs, both) -> None:
    assert block_calls(mine, theirs) == both
