"""The files of `best/` as Python modules, in the process of whoever uses them.

This is the user's own choice to run a program that was judged before; nothing of kopt's search
imports a candidate so.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kopt.actors.verify.weights import StateEntry, match_state
from kopt.errors import ConfigError
from kopt.problem import INIT_INPUTS_FUNCTION


def import_file(path: Path, *, name: str) -> ModuleType:
    """Import a file under a name of its own; Triton and inspect need the file.

    Raises:
        ConfigError: it does not import here, in one line.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"{path}: expected a Python file, found none")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's process is told what the file did, whatever it was
        del sys.modules[name]
        raise ConfigError(f"{path} does not import here: {one_line(error)}") from error
    return module


def construct(module: ModuleType, kind: str, arguments: list[Any]) -> nn.Module:
    """Return an instance of a class of the module.

    Raises:
        ConfigError: it cannot be made, in one line.
    """
    try:
        made = getattr(module, kind)(*arguments)
    except Exception as error:  # as above
        raise ConfigError(f"{module.__file__}: {kind} cannot be made: {one_line(error)}") from error
    if not isinstance(made, nn.Module):
        raise ConfigError(
            f"{module.__file__}: expected {kind} to be an nn.Module, found {type(made).__name__}"
        )
    return made


def init_inputs(reference: ModuleType) -> list[Any]:
    """Return the arguments that the problem makes its modules with."""
    return list(getattr(reference, INIT_INPUTS_FUNCTION, list)())


def hand_over(own: nn.Module, like: nn.Module) -> None:
    """Load the state of a module into another: by name, and what is left over by order or shape.

    Raises:
        ConfigError: they do not match, and why.
    """
    expected = like.state_dict()
    match = match_state(_entries(expected), candidate=_entries(own.state_dict()))
    if match.sources is None:
        raise ConfigError(
            f"the state of `like` does not fit the kernel's module: {match.reason}; pass a module "
            "made as the problem's Model is, or load_state_dict yourself"
        )
    own.load_state_dict(
        {name: expected[source] for name, source in match.sources.items()}, strict=False
    )


def one_line(error: BaseException) -> str:
    """Return what was raised as one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def _entries(state: dict[str, torch.Tensor]) -> list[StateEntry]:
    return [
        StateEntry(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in state.items()
    ]
