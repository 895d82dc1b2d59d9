"""A loaded kernel as an operation that `torch.compile` takes as it is, without a graph break.

One operation, `kopt::kernel`, serves every loaded module: its first argument says which. What it
returns without computing (its fake form) is what the module returned when it was tried here. It
says what it reads: the module's own tensors are arguments, so that a compiler knows of them.
There is no derivative: kernels are judged on what `forward` gives, and a call of `backward` fails.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from kopt.actors.use.candidate_files import one_line
from kopt.actors.use.judged_inputs import TensorSpec
from kopt.errors import ConfigError

_numbers = itertools.count()
_opened: weakref.WeakValueDictionary[int, KernelOp] = weakref.WeakValueDictionary()


class KernelOp(nn.Module):
    """A module whose forward is one operation to torch."""

    def __init__(self, kernel: nn.Module, outputs: Sequence[torch.Tensor], *, single: bool) -> None:
        """Take a module, and the outputs of a call of it.

        Args:
            kernel: whose forward takes tensors and returns tensors.
            outputs: that it returned.
            single: whether it returns one tensor, not a tuple.
        """
        super().__init__()
        self.kernel = kernel
        self.forms = [(TensorSpec(tuple(t.shape), t.dtype), t.stride()) for t in outputs]
        self._single = single
        self._number = next(_numbers)
        self._tensors = [name for name, _ in _own_tensors(kernel)]
        _opened[self._number] = self
        self.train(kernel.training)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Call the kernel."""
        own = [tensor for _, tensor in _own_tensors(self.kernel)]
        outputs = _kernel(self._number, list(inputs), own)
        return outputs[0] if self._single else tuple(outputs)

    def compute(
        self, inputs: Sequence[torch.Tensor], own: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Return the kernel's outputs for these inputs and these tensors of its own."""
        held = [tensor for _, tensor in _own_tensors(self.kernel)]
        if all(a.data_ptr() == b.data_ptr() for a, b in zip(held, own, strict=True)):
            found = self.kernel(*inputs)
        else:  # the caller runs it with other tensors than the module's (functional_call)
            state = dict(zip(self._tensors, own, strict=True))
            found = torch.func.functional_call(self.kernel, state, tuple(inputs))
        return [found] if isinstance(found, torch.Tensor) else list(found)


@torch.library.custom_op("kopt::kernel", mutates_args=())
def _kernel(number: int, inputs: list[torch.Tensor], own: list[torch.Tensor]) -> list[torch.Tensor]:
    return _opened[number].compute(inputs, own)


@_kernel.register_fake
def _kernel_fake(
    number: int, inputs: list[torch.Tensor], own: list[torch.Tensor]
) -> list[torch.Tensor]:
    device = next((tensor.device for tensor in itertools.chain(inputs, own)), None)
    return [
        torch.empty_strided(spec.shape, stride, dtype=spec.dtype, device=device)
        for spec, stride in _opened[number].forms
    ]


def as_custom_op(module: nn.Module, inputs: Sequence[Any], *, what: str) -> KernelOp:
    """Return the module as an operation, after a call that shows whether it can be one.

    Args:
        module: on its device.
        inputs: arguments to try it with, on the same one.
        what: names it in errors.

    Raises:
        ConfigError: its signature does not allow it (other arguments or results than tensors, a
            tensor that it changes or hands on), or it cannot run here.
    """
    refusal = f"{what} cannot be an operation (as_op=True): "
    if not all(isinstance(value, torch.Tensor) for value in inputs):
        kinds = ", ".join(sorted({type(v).__name__ for v in inputs if not _is_tensor(v)}))
        raise ConfigError(f"{refusal}its forward takes {kinds} beside tensors; load it as a module")
    known = [*inputs, *(tensor for _, tensor in _own_tensors(module))]
    before = [tensor.clone() for tensor in known]
    try:
        with torch.no_grad():
            found = module(*inputs)
    except Exception as error:  # whatever a kernel does here is told to the user
        raise ConfigError(f"{what} does not run here: {one_line(error)}") from error
    outputs = [found] if isinstance(found, torch.Tensor) else found
    if not isinstance(outputs, list | tuple) or not all(map(_is_tensor, outputs)):
        raise ConfigError(f"{refusal}it returns {type(found).__name__}, not tensors")
    if not all(torch.equal(a, b) for a, b in zip(known, before, strict=True)):
        raise ConfigError(f"{refusal}it changes an input or a buffer of its own in place")
    homes = {tensor.untyped_storage().data_ptr() for tensor in known}
    if any(tensor.untyped_storage().data_ptr() in homes for tensor in outputs):
        raise ConfigError(f"{refusal}an output shares its memory with an input or a weight")
    return KernelOp(module, list(outputs), single=isinstance(found, torch.Tensor))


def _own_tensors(module: nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)
