"""Whether a GPU's memory can be exchanged with confined children: tried once, with one of them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch

from kopt.actors.child.tensor_spec import Place, TensorSpec
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.child import Child, ChildFailed
from kopt.verdict import last_line

_LOG = logging.getLogger(__name__)


def usable_place(device: DeviceName, *, open_child: Callable[[], Child]) -> Place:
    """Return where tensors are exchanged with children on a device.

    Why it is host memory where there is a GPU is logged.

    Args:
        device: of the children.
        open_child: makes one, confined as candidates are.

    Raises:
        WorkerLost: the zygote is gone.
    """
    if device == "cpu":
        return "cpu"
    from kopt.actors.devices.cuda_memory import DeviceTensor

    child: Child | None = None
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
        tensor = DeviceTensor(TensorSpec((1,), "float32"))
        child = open_child()
        child.share([tensor])
    except (ChildFailed, MemoryError, RuntimeError, OSError) as error:
        why = last_line(error.log) if isinstance(error, ChildFailed) else str(error)
        _LOG.warning(
            "inputs and outputs cross by host memory, which is slow for large ones: "
            "a child cannot map the GPU's (%s)",
            why,
        )
        return "cpu"
    finally:
        if child is not None:
            child.end()
    return "cuda"
