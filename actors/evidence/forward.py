"""One forward call in a child: problem and candidate loaded, weights shared, inputs made.

The candidate runs with the reference's weights, by name, or by order where the names differ. What
comes out is held against the reference once, which is no verdict: the process that says so runs the
candidate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from kopt.actors.child.memory import DTYPES
from kopt.actors.child.module import construct, import_source, init_arguments
from kopt.actors.devices.base import Device
from kopt.actors.evidence.order import Order
from kopt.actors.verify.weights import StateEntry, match_state
from kopt.problem import CANDIDATE_CLASS, INPUTS_FUNCTION, REFERENCE_CLASS

WARM_UPS = 3
"""Calls before any that count: autotuning, caches of libraries, lazily loaded kernels."""
RTOL = ATOL = 1e-2
"""Of the sketchy comparison: far off is told, rounding is not."""


@dataclass(slots=True, kw_only=True)
class Forward:
    """A call that can be made again and again."""

    run: Callable[[], object]
    reference: Callable[[], object] | None
    """The same call of the reference; None where it is the reference that is run."""

    def agreement(self) -> str:
        """Return how the candidate's output differs from the reference's; empty where it does not.

        The reference is let go afterwards.
        """
        if self.reference is None:
            return ""
        ours, theirs = (pytree.tree_leaves(call()) for call in (self.run, self.reference))
        self.reference = None
        if len(ours) != len(theirs):
            return f"{len(ours)} outputs where the reference has {len(theirs)}"
        for number, (own, expected) in enumerate(zip(ours, theirs, strict=True)):
            if not isinstance(own, torch.Tensor) or not isinstance(expected, torch.Tensor):
                continue
            if own.shape != expected.shape:
                return f"output {number} is {list(own.shape)}, expected {list(expected.shape)}"
            close = torch.isclose(
                own.double(), expected.double(), rtol=RTOL, atol=ATOL, equal_nan=True
            )
            if not bool(close.all()):
                share = 1.0 - close.double().mean().item()
                return f"output {number}: {100 * share:.3g} % of its values are off by > {ATOL:g}"
        return ""


def load_forward(order: Order, *, device: Device, folder: Path) -> Forward:
    """Load what an order names, and make its inputs.

    Args:
        order: the call.
        device: that it runs on.
        folder: where sources are written: Triton and inspect need the files.

    Raises:
        Whatever the sources raise; StageFailed where they break the contract.
    """

    def placed(model: nn.Module) -> nn.Module:
        model = model.to(device.name)
        return model if order.dtype is None else model.to(DTYPES[order.dtype])

    reference = import_source(order.reference, name="reference", folder=folder)
    arguments = init_arguments(reference)
    torch.manual_seed(order.seed)
    with on(device):  # gigabytes are drawn where they are needed
        inputs = list(getattr(reference, INPUTS_FUNCTION)())
    inputs = pytree.tree_map_only(
        torch.Tensor, lambda tensor: _cast(device.place(tensor), order.dtype), inputs
    )
    how: dict[str, Any] = {"seed": order.seed, "mode": order.module_mode}
    model = placed(construct(reference, REFERENCE_CLASS, arguments, **how))
    if order.candidate is None:
        return Forward(run=lambda: model(*inputs), reference=None)
    module = import_source(order.candidate, name="candidate", folder=folder)
    own = placed(construct(module, CANDIDATE_CLASS, arguments, **how))
    _share_weights(own, model)
    return Forward(run=lambda: own(*inputs), reference=lambda: model(*inputs))


def warm(forward: Forward, device: Device) -> float:
    """Call until nothing is new; return the seconds of the last call."""
    seconds = 0.0
    for _ in range(WARM_UPS):
        began_s = time.perf_counter()
        forward.run()
        device.check()
        seconds = time.perf_counter() - began_s
    return seconds


def on(device: Device) -> AbstractContextManager[object]:
    """Make new tensors on the device, where it is not the host."""
    return nullcontext() if device.name == "cpu" else torch.device(device.name)


def _cast(tensor: torch.Tensor, dtype: str | None) -> torch.Tensor:
    return tensor.to(DTYPES[dtype]) if dtype is not None and tensor.is_floating_point() else tensor


def _share_weights(own: nn.Module, reference: nn.Module) -> None:
    state, expected = own.state_dict(), reference.state_dict()
    match = match_state(_entries(expected), candidate=_entries(state))
    if match.sources is not None:
        own.load_state_dict(
            {name: expected[source] for name, source in match.sources.items()}, strict=False
        )


def _entries(state: dict[str, torch.Tensor]) -> list[StateEntry]:
    return [
        StateEntry(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in state.items()
    ]
