"""Loading a module in a child: source to a file, file to a Python module, class to an instance."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kopt.problem import INPUT_CASES_FUNCTION, INPUTS_FUNCTION


class StageFailed(Exception):
    """Loading failed at a stage, through the fault of the source."""

    def __init__(self, stage: str, why: str) -> None:
        super().__init__(stage, why)
        self.stage = stage
        self.why = why


def import_source(source: str, *, name: str, folder: Path) -> ModuleType:
    """Write a source down and import it; Triton and inspect need the file.

    Raises:
        Whatever the source raises while it is imported.
    """
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8", errors="surrogatepass")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def init_arguments(module: ModuleType) -> list[Any]:
    """Return the constructor's arguments; none where the module has no get_init_inputs.

    Raises:
        StageFailed: they are no list or tuple.
    """
    make = getattr(module, "get_init_inputs", None)
    if make is None:
        return []
    values = make()
    if not isinstance(values, list | tuple):
        raise StageFailed(
            "contract", f"get_init_inputs() must return a list, got {type(values).__name__}"
        )
    return list(values)


def argument_lists(module: ModuleType) -> list[tuple[str, list[Any]]]:
    """Return (where from, arguments of forward): get_inputs() and each of get_input_cases().

    Raises:
        StageFailed: there is no get_inputs, or what it or get_input_cases() gives are no lists.
        Whatever they raise.
    """
    make = getattr(module, INPUTS_FUNCTION, None)
    if make is None:
        raise StageFailed("contract", f"the source defines no {INPUTS_FUNCTION}()")
    found = [(f"{INPUTS_FUNCTION}()", make())]
    make_cases = getattr(module, INPUT_CASES_FUNCTION, None)
    if make_cases is not None:
        name = f"{INPUT_CASES_FUNCTION}()"
        cases = _as_list(make_cases(), name)
        found += [(f"{name}[{number}]", values) for number, values in enumerate(cases)]
    return [(name, _as_list(values, name)) for name, values in found]


def _as_list(values: object, name: str) -> list[Any]:
    if not isinstance(values, list | tuple):
        raise StageFailed("contract", f"{name} must return a list, got {type(values).__name__}")
    return list(values)


def construct(
    module: ModuleType, class_name: str, arguments: list[Any], *, seed: int, mode: str
) -> nn.Module:
    """Make the module's class, under a seed so that equal constructors draw equal weights.

    Raises:
        StageFailed: there is no such class, or it is no nn.Module.
        Whatever its constructor raises.
    """
    made_by = getattr(module, class_name, None)
    if made_by is None:
        raise StageFailed("contract", f"the source defines no class {class_name}")
    torch.manual_seed(seed)
    instance = made_by(*arguments)
    if not isinstance(instance, nn.Module):
        raise StageFailed(
            "contract", f"{class_name} must be an nn.Module, got {type(instance).__name__}"
        )
    return instance.eval() if mode == "eval" else instance


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Make new floating tensors of this dtype for a while."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
