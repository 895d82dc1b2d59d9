"""A problem's model with real weights and inputs, on the device that it is compiled for."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from kopt.actors.child.module import (
    StageFailed,
    argument_lists,
    construct,
    import_source,
    init_arguments,
)
from kopt.actors.compiled.order import Order
from kopt.actors.compiled.take_apart import Subject
from kopt.actors.rewriter.reference import first_line
from kopt.errors import ProblemError
from kopt.problem import REFERENCE_CLASS, Problem


def load_subject(order: Order) -> Subject:
    """Construct a problem's model, and its inputs twice.

    Raises:
        ProblemError: the source does not import, breaks the contract, or does not run.
    """
    problem = order.problem
    first, second = order.seeds
    try:
        file = import_source(problem.source, name="compiled_model", folder=Path(order.folder))
        model = construct(
            file, REFERENCE_CLASS, init_arguments(file), seed=first, mode=order.module_mode
        )
        model = _placed_model(model, problem, device=order.device)
        given = _inputs(file, problem, seed=first, device=order.device)
        again = _inputs(file, problem, seed=second, device=order.device)
    except StageFailed as failure:
        raise ProblemError(problem.name, failure.why) from failure
    except Exception as error:
        raise ProblemError(
            problem.name, f"its Model or inputs cannot be made: {first_line(error)}"
        ) from error
    return Subject(name=problem.name, file=file, model=model, given=given, again=again)


def _placed_model(model: nn.Module, problem: Problem, *, device: str) -> nn.Module:
    if problem.dtype is not None:
        model = model.to(getattr(torch, problem.dtype))
    return model.to(device)


def _inputs(file: ModuleType, problem: Problem, *, seed: int, device: str) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    (_, values), *_ = argument_lists(file)
    dtype = None if problem.dtype is None else getattr(torch, problem.dtype)

    def placed(held: torch.Tensor) -> torch.Tensor:
        cast = held.to(dtype) if dtype is not None and held.is_floating_point() else held
        return cast.to(device)

    return tuple(pytree.tree_map_only(torch.Tensor, placed, values))
