"""Where tensors that a child and its supervisor exchange lie: host memory, or the GPU's own.

On a GPU what is exchanged stays there: inputs are drawn on it, outputs compared on it, and a
gigabyte crosses by its descriptor. Where a child cannot map the supervisor's device memory (a
driver without virtual memory management, a sandbox that hides the device), host memory stands in.
"""

from __future__ import annotations

import os

import torch

from kopt.actors.child.host_memory import available_bytes
from kopt.actors.child.memory import SharedTensor
from kopt.actors.child.tensor_spec import Place, Shareable, TensorSpec

LEAST_FREE_SHARE = 0.15
"""Of a memory: below it, it is short."""


def new_tensor(spec: TensorSpec, *, place: Place) -> Shareable:
    """Return a tensor to exchange, its content undefined.

    Raises:
        MemoryError: there is no room.
    """
    if place == "cpu":
        return SharedTensor(spec)
    from kopt.actors.devices.cuda_memory import DeviceTensor

    return DeviceTensor(spec)


def place_of(tensor: torch.Tensor) -> Place:
    """Return where a tensor lies."""
    return "cuda" if tensor.device.type == "cuda" else "cpu"


def available_in(place: Place) -> int:
    """Return the bytes of memory that are available there now."""
    if place == "cuda":
        let_go_in(place)
        return int(torch.cuda.mem_get_info()[0])
    return available_bytes()


def let_go_in(place: Place) -> None:
    """Give back what this process keeps there for later, where it is much."""
    if place == "cuda":
        from kopt.actors.devices.cuda_memory import let_go

        let_go()


def is_short_in(place: Place) -> bool:
    """Whether so little is free there that nothing should be kept which nobody uses.

    The host's memory counts everywhere: children live in it.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if available_bytes() < LEAST_FREE_SHARE * total:
        return True
    if place == "cpu":
        return False
    try:
        free, all_of_it = torch.cuda.mem_get_info()
    except RuntimeError:  # a device that is lost says so where it is used
        return False
    return free < LEAST_FREE_SHARE * all_of_it
