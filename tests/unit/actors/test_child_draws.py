"""Where a problem's inputs are drawn: on the device, or on the host where it does not let that."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from kopt.actors.child.drawing import Drawing
from kopt.actors.child.module import StageFailed


class Draws:
    """The arguments of one problem, on a device by name."""

    def __init__(self, get_inputs, *, device: str | None = "meta") -> None:
        self._module = SimpleNamespace(get_inputs=get_inputs)
        self._device = None if device is None else SimpleNamespace(name=device)
        self._drawing = Drawing()

    def __call__(self, *, seed: int = 3) -> torch.Tensor:
        ((_, (tensor,)),) = self._drawing.drawn(self._module, device=self._device, seed=seed)
        return tensor


def test_inputs_are_drawn_on_the_device() -> None:
    assert Draws(lambda: [torch.randn(4)])().device.type == "meta"


@pytest.mark.parametrize("device", [None, "cpu"])
def test_on_a_cpu_the_host_draws_by_its_seed(device) -> None:
    drawn = Draws(lambda: [torch.randn(4)], device=device)
    torch.manual_seed(3)
    expected = torch.randn(4)
    assert torch.equal(drawn(), expected)
    assert not torch.equal(drawn(seed=4), drawn())


def test_a_problem_that_mixes_in_host_tensors_draws_on_the_host_for_good() -> None:
    table, calls = torch.arange(4.0), []

    def get_inputs() -> list[torch.Tensor]:
        calls.append(1)
        return [torch.where(torch.randn(4) > table, 1.0, table)]

    drawn = Draws(get_inputs)
    assert drawn().device.type == "cpu"
    assert drawn().device.type == "cpu"
    assert len(calls) == 3
    assert torch.equal(drawn(), drawn())


def test_a_breach_of_the_contract_is_said_at_once() -> None:
    with pytest.raises(StageFailed, match="must return a list, got int"):
        Draws(lambda: 5)(seed=0)
