"""What a kernel was judged on: shapes, dtypes and values beside tensors of a call's arguments.

A kernel may be written for one shape, and be wrong on another without a word. So a loaded module
compares what it is called with, which costs microseconds, before it computes. A tensor of that form
that lies otherwise in memory (a transposed view) is copied into the judged order: a kernel that
reads from a pointer on would not know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kopt.errors import ConfigError
from kopt.problem import INPUT_CASES_FUNCTION, INPUTS_FUNCTION


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor's form; on which device it lies is the module's affair."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    stride: tuple[int, ...] = field(default=(), compare=False)
    """In elements; no part of the form."""

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {self.shape}"


def judged_calls(reference: ModuleType, *, dtype: torch.dtype | None) -> list[list[object]]:
    """Return the forms of the argument lists that the problem calls its modules with.

    They are made on the meta device where the problem's code can be run there, so that gigabytes
    are not drawn for their shapes.

    Args:
        reference: the problem's module.
        dtype: what floating tensors were cast to; None: as the problem makes them.
    """
    try:
        with torch.device("meta"):
            calls = _calls(reference)
    except Exception:  # noqa: BLE001 - a problem's code may read values, which meta tensors lack
        calls = _calls(reference)
    return [[form(value, dtype=dtype) for value in call] for call in calls]


def form(value: object, *, dtype: torch.dtype | None = None) -> object:
    """Return a tensor's spec, containers with their tensors so, and any other value as it is."""
    if isinstance(value, torch.Tensor):
        floats = value.is_floating_point() and dtype is not None
        own = dtype if floats and dtype else value.dtype
        return TensorSpec(tuple(value.shape), own, value.stride())
    if isinstance(value, list | tuple):
        return tuple(form(item, dtype=dtype) for item in value)
    if isinstance(value, dict):
        return {key: form(item, dtype=dtype) for key, item in value.items()}
    return value


def guard(module: nn.Module, calls: list[list[object]], *, what: str) -> None:
    """Have a module refuse arguments that it was not judged on.

    Args:
        module: gets a hook that runs before its forward.
        calls: forms of the argument lists that it was judged on.
        what: names it in the error.
    """

    def check(
        _: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if not named and _is_as_judged(arguments, calls[0]):
            return None  # the way of nearly every call
        values = [*arguments, *named.values()]
        found = [form(value) for value in values]
        call = next((each for each in calls if each == found), None)
        if call is None:
            raise ConfigError(
                f"{what} was judged on {_text(calls[0])}, found {_text(found)}; search that shape, "
                "or load with any_shape=True where you know that it is right"
            )
        laid = [_laid_out(value, spec) for value, spec in zip(values, call, strict=True)]
        given = len(arguments)
        return tuple(laid[:given]), dict(zip(named, laid[given:], strict=True))

    module.register_forward_pre_hook(check, with_kwargs=True)


def _calls(reference: ModuleType) -> list[list[Any]]:
    cases: list[Any] = getattr(reference, INPUT_CASES_FUNCTION, list)()
    return [list(getattr(reference, INPUTS_FUNCTION)()), *map(list, cases)]


def _is_as_judged(values: tuple[Any, ...], call: list[object]) -> bool:
    """Whether the arguments are tensors alone, of the judged form and order in memory."""
    return len(values) == len(call) and all(
        isinstance(spec, TensorSpec)
        and isinstance(value, torch.Tensor)
        and value.shape == spec.shape
        and value.dtype == spec.dtype
        and value.stride() == spec.stride
        for value, spec in zip(values, call, strict=True)
    )


def _laid_out(value: Any, spec: object) -> Any:  # noqa: ANN401 - an argument of any kind
    """Return a tensor in the judged order in memory; a copy where it lies otherwise."""
    if isinstance(value, torch.Tensor) and isinstance(spec, TensorSpec):
        if value.stride() == spec.stride:
            return value
        if 0 in spec.stride:  # an expanded tensor, into which nothing can be copied
            raise ConfigError(
                f"expected a tensor with strides {spec.stride}, found {value.stride()}; expand it"
            )
        made = torch.empty_strided(spec.shape, spec.stride, dtype=value.dtype, device=value.device)
        return made.copy_(value)
    if isinstance(value, list | tuple) and isinstance(spec, tuple):
        return type(value)(_laid_out(item, each) for item, each in zip(value, spec, strict=True))
    return value


def _text(call: list[object]) -> str:
    return "(" + ", ".join(str(value) for value in call) + ")"
