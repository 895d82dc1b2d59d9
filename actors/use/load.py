"""`kopt.load`: the best kernel of a run as a module to put into a model."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from kopt.actors.use.candidate_files import construct, hand_over, import_file, init_inputs
from kopt.actors.use.custom_op import as_custom_op
from kopt.actors.use.judged_inputs import guard, judged_calls
from kopt.data.found_kernel import FoundKernel, find_kernel
from kopt.errors import ConfigError
from kopt.problem import CANDIDATE_CLASS, REFERENCE_CLASS

MODE_DEPENDENT = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
"""Modules that compute something else in train mode than in eval mode."""
_number = itertools.count()


def load(
    run: str | Path,
    problem: str | None = None,
    *,
    like: nn.Module | None = None,
    init: Sequence[Any] | None = None,
    arm: str | None = None,
    rank: int | None = None,
    device: str | torch.device | None = None,
    any_shape: bool = False,
    as_op: bool = False,
) -> nn.Module:
    """Return the kernel that a run found; see `kopt.load`, which is this.

    Raises:
        ConfigError: there is nothing to load, or it does not fit; one line, with what to do.
        StoreError: the run folder is damaged.
    """
    kernel = find_kernel(run, problem, arm=arm, rank=rank)
    what = f"{kernel.problem.name}, {kernel.path.name} of {run}"
    number = next(_number)
    source = import_file(kernel.path, name=f"kopt_kernel_{number}")
    reference = import_file(kernel.reference, name=f"kopt_reference_{number}")
    dtype = getattr(torch, kernel.problem.dtype) if kernel.problem.dtype else None
    module = construct(
        source, CANDIDATE_CLASS, init_inputs(reference) if init is None else list(init)
    )
    home = _home(kernel, like=like, device=device, what=what)
    module.to(device=home, dtype=dtype)
    module.train(kernel.module_mode == "train")
    if like is not None:
        _check_mode(reference, kernel, like, what=what)
        hand_over(module, like)
    calls = judged_calls(reference, dtype=dtype)
    if as_op:
        inputs = _drawn(reference, device=home, dtype=dtype)
        module = as_custom_op(module, inputs, what=what)
    else:
        module.register_forward_hook(partial(_say_where_gradients_end, told=[], what=what))
    if not any_shape:
        guard(module, calls, what=what)
    return module


def _home(
    kernel: FoundKernel,
    *,
    like: nn.Module | None,
    device: str | torch.device | None,
    what: str,
) -> torch.device:
    """Return where the module goes: the device asked for, `like`'s, or the one it was judged on."""
    judged = "cpu" if kernel.record["device"] == "cpu" else "cuda"
    home = torch.device(device) if device is not None else torch.device(judged)
    if device is None and like is not None:
        home = next(
            (each.device for each in itertools.chain(like.parameters(), like.buffers())), home
        )
    if home.type != judged:
        raise ConfigError(f"{what} was written for {kernel.record['device']}, found {home}")
    if home.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"{what} was written for {kernel.record['device']}; no GPU is seen here")
    return home


def _check_mode(reference: ModuleType, kernel: FoundKernel, like: nn.Module, *, what: str) -> None:
    """Refuse a kernel of one mode for a module of the other where that changes what it computes."""
    is_train = kernel.module_mode == "train"
    if like.training == is_train:
        return
    model = construct(reference, REFERENCE_CLASS, init_inputs(reference))
    if any(isinstance(each, MODE_DEPENDENT) for each in [*model.modules(), *like.modules()]):
        other = "eval" if is_train else "train"
        raise ConfigError(
            f"{what} was judged in {kernel.module_mode} mode and `like` is in {other} mode, where "
            f"it computes something else; search with evaluate.module_mode={other}"
        )


def _say_where_gradients_end(
    module: nn.Module, inputs: tuple[Any, ...], output: object, *, told: list[bool], what: str
) -> None:
    """Warn once where a model that is trained would learn nothing through a kernel."""
    if told or torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return
    wanted = any(isinstance(each, torch.Tensor) and each.requires_grad for each in inputs)
    if wanted and isinstance(output, torch.Tensor) and not output.requires_grad:
        told.append(True)
        warnings.warn(f"{what} has no derivative: no gradient passes through it", stacklevel=2)


def _drawn(reference: ModuleType, *, device: torch.device, dtype: torch.dtype | None) -> list[Any]:
    """Return one argument list of the problem, on the device."""
    with torch.random.fork_rng(devices=[]):
        values = list(reference.get_inputs())
    return [
        value.to(device, dtype if value.is_floating_point() else None)
        if isinstance(value, torch.Tensor)
        else value
        for value in values
    ]
