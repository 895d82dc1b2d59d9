"""What a child can see of a call's outputs besides their values: a tripwire, no proof."""

from __future__ import annotations

from typing import Any

import torch

from kopt.actors.child.plain import encode


def tensors_of(arguments: list[Any]) -> list[torch.Tensor]:
    """Return the tensors of a call's arguments, in the order of their JSON form."""
    found: list[torch.Tensor] = []

    def put(tensor: torch.Tensor) -> int:
        found.append(tensor)
        return len(found) - 1

    encode(arguments, put)
    return found


def notes_on(tensors: list[torch.Tensor], arguments: list[Any]) -> dict[str, Any]:
    """Return what may be odd about outputs: subclasses, shared memory, holes, devices."""
    storages = {
        tensor.untyped_storage().data_ptr() for tensor in tensors_of(arguments) if tensor.numel()
    }
    return {
        "types": sorted(
            {type(tensor).__name__ for tensor in tensors if type(tensor) is not torch.Tensor}
        ),
        "aliases": any(
            tensor.untyped_storage().data_ptr() in storages for tensor in tensors if tensor.numel()
        ),
        "dense": all(_is_dense(tensor) for tensor in tensors),
        "devices": sorted({tensor.device.type for tensor in tensors}),
    }


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether each element has a place of its own: no stride 0 from an expand."""
    return all(
        size <= 1 or stride != 0 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
