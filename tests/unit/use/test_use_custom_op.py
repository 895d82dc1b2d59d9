"""A loaded kernel as an operation of torch: no graph break, and refused where it cannot be one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kopt.actors.use.custom_op import KernelOp, as_custom_op
from kopt.errors import ConfigError


class Opaque(nn.Module):
    """Computes where a compiler cannot look, as a kernel does."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x.detach().numpy() * self.weight.detach().numpy()
        return torch.from_numpy(scaled.sum(axis=1))


class Changing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.calls: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * 2


class Doing(nn.Module):
    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def forward(self, *inputs: Any) -> Any:
        return self.what(*inputs)


INPUTS = [torch.arange(8.0).reshape(2, 4)]


def refusal(module: nn.Module, inputs: list[Any] = INPUTS) -> str:
    with pytest.raises(ConfigError) as caught:
        as_custom_op(module, inputs, what="it")
    return str(caught.value)


def test_torch_compile_takes_it_without_a_graph_break() -> None:
    made = as_custom_op(Opaque(), INPUTS, what="it")
    compiled = torch.compile(lambda x: made(x) + 1, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert compiled(INPUTS[0]).tolist() == [13.0, 45.0]  # 2·(0+1+2+3)+1, 2·(4+5+6+7)+1


def test_torch_s_own_checks_of_an_operation_pass() -> None:
    made = as_custom_op(Opaque(), INPUTS, what="it")
    own = [made.kernel.weight.detach()]
    torch.library.opcheck(torch.ops.kopt.kernel.default, (made._number, INPUTS, own))


def test_weights_that_change_later_are_read() -> None:
    made = as_custom_op(Opaque(), INPUTS, what="it")
    compiled = torch.compile(made, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        assert compiled(INPUTS[0]).tolist() == [12.0, 44.0]
        made.kernel.weight.fill_(1.0)
        assert compiled(INPUTS[0]).tolist() == [6.0, 22.0]


def test_weights_of_a_functional_call_are_those_that_count() -> None:
    made = as_custom_op(Opaque(), INPUTS, what="it")
    own = {"kernel.weight": torch.zeros(4)}
    with torch.no_grad():
        assert torch.func.functional_call(made, own, (INPUTS[0],)).tolist() == [0.0, 0.0]


def test_several_outputs_come_as_a_tuple() -> None:
    made = as_custom_op(Doing(lambda x: (x + 1, x.sum())), INPUTS, what="it")
    assert [tuple(each.shape) for each in made(*INPUTS)] == [(2, 4), ()]


def test_backward_through_it_fails_in_place_of_giving_nothing() -> None:
    made = as_custom_op(Opaque(), INPUTS, what="it")
    with pytest.raises(RuntimeError, match="no autograd formula"):
        made(INPUTS[0].clone().requires_grad_()).sum().backward()


def test_one_that_was_thrown_away_leaves_nothing() -> None:
    from kopt.actors.use import custom_op

    made: KernelOp | None = as_custom_op(Opaque(), INPUTS, what="it")
    assert made is not None
    number = made._number
    made = None
    assert number not in custom_op._opened


def test_what_cannot_be_an_operation_is_refused_with_the_reason() -> None:
    assert "takes float beside tensors" in refusal(Doing(lambda x, y: x * y), [*INPUTS, 2.0])
    assert "returns dict, not tensors" in refusal(Doing(lambda x: {"y": x}))
    assert "changes an input or a buffer" in refusal(Changing())
    assert "changes an input or a buffer" in refusal(Doing(lambda x: x.add_(1) * 1))
    assert "shares its memory" in refusal(Doing(lambda x: x.T))
    assert "does not run here: ZeroDivisionError" in refusal(Doing(lambda x: 1 / 0))
