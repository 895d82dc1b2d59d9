"""A GPU that is not there: fake tensors on it, and the answers of `torch.cuda` about it.

For a process that compiles Triton candidates without a device and then ends: what it replaces in
torch stays replaced. Tensors are torch's own fake ones: shapes, strides, dtypes and devices are
real, values are not, and whoever asks for a value is told so by an error. An address is as it
would be on the device, where the allocator aligns every allocation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import EllipsisType, SimpleNamespace
from typing import Any

import torch
import torch._subclasses.fake_tensor
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from kopt.actors.build.gpu_facts import GpuFacts

ADDRESS = 0x7F00_0000_0000
"""Of every allocation: a multiple of 512, as CUDA's are."""


class StandInStream:
    """A stream that orders nothing, since nothing runs."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Take what a stream or an event takes."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Whatever it is asked to do (`wait_stream`, `record`, `synchronize`) is done."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def stand_in_gpu(facts: GpuFacts) -> None:
    """Let torch answer as if this GPU were here; no real one is touched from now on."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    properties = SimpleNamespace(
        name=facts.name,
        major=facts.major,
        minor=facts.minor,
        multi_processor_count=facts.num_sms,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=facts.block_shared_bytes,
        shared_memory_per_multiprocessor=facts.sm_shared_bytes,
        regs_per_multiprocessor=facts.sm_registers,
        max_threads_per_multi_processor=facts.sm_threads,
        max_threads_per_block=1024,
        L2_cache_size=facts.l2_bytes,
        total_memory=facts.total_bytes,
        warp_size=32,
    )
    stream = StandInStream()
    answers: dict[str, Any] = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "device": lambda device: nullcontext(),
        "device_of": lambda value: nullcontext(),
        "stream": lambda stream: nullcontext(),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: (facts.major, facts.minor),
        "get_device_name": lambda device=None: facts.name,
        "Stream": StandInStream,
        "Event": StandInStream,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    fake: Any = torch._subclasses.fake_tensor
    fake.init_gpu_context = lambda device=None: None
    tensor: Any = FakeTensor
    tensor.data_ptr = lambda self: ADDRESS + self.storage_offset() * self.element_size()
    module: Any = nn.Module
    module._apply = _apply


def _apply(self: nn.Module, function: Callable[..., Any], recurse: bool = True) -> nn.Module:  # noqa: FBT001, FBT002 - torch's
    """Move or convert a module: fake parameters cannot be swapped in place, as torch would."""
    children: list[Any] = list(self.children()) if recurse else []
    for child in children:
        child._apply(function)
    for name, weight in self._parameters.items():
        if weight is not None:
            made = nn.Parameter(function(weight), requires_grad=weight.requires_grad)
            self._parameters[name] = made
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = function(buffer)
    return self


class OnDevice(TorchFunctionMode):
    """Runs torch's functions on fake tensors where torch itself would ask a device for its turn."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever the function returns
        """Name the device by its number; index by operators that no device guards."""
        del types
        if func is torch.Tensor.cuda:
            return args[0].to("cuda:0")
        if func is torch.Tensor.__getitem__:
            return _get(args[0], args[1])
        if func is torch.Tensor.__setitem__:
            return _set(args[0], args[1], args[2])
        named = {name: _numbered(value) for name, value in (kwargs or {}).items()}
        return func(*[_numbered(value) for value in args], **named)


def _numbered(value: object) -> object:
    if (isinstance(value, str) and value == "cuda") or (
        isinstance(value, torch.device) and value.type == "cuda" and value.index is None
    ):
        return torch.device("cuda", 0)
    return value


def _get(tensor: torch.Tensor, index: Any) -> torch.Tensor:  # noqa: ANN401 - any index
    """Index as Python does: numbers, slices, None and dots give a view; tensors gather."""
    view, gathers = _view(tensor, index if isinstance(index, tuple) else (index,))
    if any(each is not None for each in gathers):
        gathered: torch.Tensor = torch.ops.aten.index.Tensor(view, gathers)
        return gathered
    return view


def _set(tensor: torch.Tensor, index: Any, value: Any) -> None:  # noqa: ANN401 - any index
    view, gathers = _view(tensor, index if isinstance(index, tuple) else (index,))
    new = value if isinstance(value, torch.Tensor) else view.new_full((), value)
    if any(each is not None for each in gathers):
        torch.ops.aten.index_put_(view, gathers, new.to(view.dtype))
    else:
        view.copy_(new)


def _view(
    tensor: torch.Tensor, index: Sequence[Any]
) -> tuple[torch.Tensor, list[torch.Tensor | None]]:
    """Return the view that plain indices give, and the tensors that index its dimensions."""
    taken = sum(
        each.dim() if isinstance(each, torch.Tensor) and each.dtype == torch.bool else 1
        for each in index
        if each is not None and not isinstance(each, EllipsisType)
    )
    gathers: list[torch.Tensor | None] = []
    at = 0
    for each in index:
        if each is None:
            tensor = tensor.unsqueeze(at)
        elif isinstance(each, EllipsisType):
            skipped = tensor.dim() - at - taken
            gathers += [None] * skipped
            at += skipped
            continue
        elif isinstance(each, slice):
            tensor = torch.ops.aten.slice.Tensor(tensor, at, each.start, each.stop, each.step or 1)
            taken -= 1
        elif isinstance(each, torch.Tensor | list):
            chosen = each if isinstance(each, torch.Tensor) else torch.tensor(each)
            gathers.append(chosen)
            width = chosen.dim() if chosen.dtype == torch.bool else 1
            taken -= width
            at += width
            continue
        else:
            tensor = tensor.select(at, int(each))
            taken -= 1
            continue
        gathers.append(None)
        at += 1
    return tensor, gathers
