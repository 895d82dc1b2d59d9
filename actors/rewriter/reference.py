"""The reference as Python objects: its source executed, its Model and inputs made without memory.

Tensors are fake (shape, dtype and strides only), so that a reference with gigabytes of inputs is
read as fast as a small one. A Model that needs real values to construct gets real ones.
"""

from __future__ import annotations

import contextlib
import inspect
import keyword
import linecache
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from kopt.errors import ProblemError
from kopt.problem import REFERENCE_CLASS, Problem

ModuleMode = Literal["train", "eval"]

_GIVEN = (torch.Tensor, type(None), bool, int, float, str, torch.dtype)
"""What an argument of forward may be, or hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smaller:
    """How a reference is made smaller: the same Model and forward, with smaller sizes."""

    batch: tuple[int, int] | None
    """A leading size of inputs, and what it is cut to; None leaves it to the division."""
    divisions: tuple[tuple[int, int], ...] = ()
    """(least, divisor) pairs: sizes of inputs and numbers among the constructor's arguments that
    are at least so large are divided, by the first pair that goes into them."""

    def size(self, size: int) -> int:
        """Return what a size becomes."""
        for least, divisor in self.divisions:
            if size >= least and size % divisor == 0:
                return size // divisor
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A constructed reference and one set of arguments."""

    model: nn.Module
    arguments: tuple[Any, ...]
    """Positional arguments of forward."""
    fake: FakeTensorMode | None
    """The mode that its tensors belong to; None where they are real."""


def load_reference(
    problem: Problem, *, mode: ModuleMode, smaller: Smaller | None = None
) -> Reference:
    """Construct the problem's Model and inputs, cast to the problem's dtype.

    Args:
        problem: to construct.
        mode: how its modules run.
        smaller: how sizes are cut; None leaves them as they are.

    Raises:
        ProblemError: the source does not import, or breaks the contract.
    """
    with _imported(problem) as module, warnings.catch_warnings():
        # The source's warnings say nothing about this reading of it.
        warnings.simplefilter("ignore")
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        try:
            with fake:
                model, arguments = _make(problem, module, mode=mode, smaller=smaller)
            return Reference(model=model, arguments=arguments, fake=fake)
        except ProblemError:
            raise
        except Exception:  # noqa: BLE001 -- the source's own code: real values may be all it needs
            pass
        try:
            model, arguments = _make(problem, module, mode=mode, smaller=smaller)
        except ProblemError:
            raise
        except Exception as error:
            raise ProblemError(
                problem.name, f"its Model or inputs cannot be made: {first_line(error)}"
            ) from error
        return Reference(model=model, arguments=arguments, fake=None)


def attribute_expression(model: nn.Module, name: str) -> str | None:
    """Return how a tensor of the module is reached in Python, such as `layers[0].weight`.

    Args:
        model: the module.
        name: dotted, as in its state: `layers.0.weight`.

    Returns:
        The expression without the module itself; None where there is no such tensor.
    """
    held: Any = model
    text = ""
    for part in name.split("."):
        if not hasattr(held, part):
            return None
        listed = isinstance(held, nn.Sequential | nn.ModuleList | nn.ParameterList)
        if listed and part.isdigit() and int(part) < len(held):
            text += f"[{part}]"
        elif isinstance(held, nn.ModuleDict | nn.ParameterDict) and part in held:
            text += f"[{part!r}]"
        elif part.isidentifier() and not keyword.iskeyword(part):
            text += f".{part}"
        else:
            return None
        held = getattr(held, part)
    return text.removeprefix(".") if isinstance(held, torch.Tensor) else None


def first_line(error: BaseException) -> str:
    """Return an error as one short line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200]}" if text else type(error).__name__


@contextlib.contextmanager
def _imported(problem: Problem) -> Iterator[ModuleType]:
    """Execute the source as a module that exists only meanwhile."""
    name = f"kopt_reference_{problem.problem_id[:16]}"
    file = f"<{name}>"
    module = ModuleType(name)
    module.__file__ = file
    lines = problem.source.splitlines(keepends=True)
    linecache.cache[file] = (len(problem.source), None, lines, file)
    sys.modules[name] = module
    dtype, grad = torch.get_default_dtype(), torch.is_grad_enabled()
    try:
        try:
            exec(compile(problem.source, file, "exec"), module.__dict__)
        except Exception as error:
            raise ProblemError(
                problem.name, f"its source does not import: {first_line(error)}"
            ) from error
        yield module
    finally:
        # The source may have changed torch's defaults; this process serves other problems too.
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        sys.modules.pop(name, None)
        linecache.cache.pop(file, None)


def _make(
    problem: Problem, module: ModuleType, *, mode: ModuleMode, smaller: Smaller | None
) -> tuple[nn.Module, tuple[Any, ...]]:
    made_by = getattr(module, REFERENCE_CLASS, None)
    if made_by is None:
        raise ProblemError(problem.name, f"its source defines no class {REFERENCE_CLASS}")
    make_inputs = getattr(module, "get_inputs", None)
    if make_inputs is None:
        raise ProblemError(problem.name, "its source defines no get_inputs()")
    make_init = getattr(module, "get_init_inputs", None)
    init = list(make_init()) if make_init is not None else []
    if smaller is not None:
        init = pytree.tree_map_only(int, lambda n: _cut_number(n, smaller), init)
    model = made_by(*init)
    if not isinstance(model, nn.Module):
        raise ProblemError(
            problem.name, f"{REFERENCE_CLASS} must be an nn.Module, got {type(model).__name__}"
        )
    arguments = tuple(make_inputs())
    if smaller is not None:
        arguments = pytree.tree_map_only(torch.Tensor, lambda t: _cut(t, smaller), arguments)
    _check_call(problem, model, arguments)
    if problem.dtype is not None:
        dtype = getattr(torch, problem.dtype)
        model = model.to(dtype)
        arguments = pytree.tree_map_only(
            torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, arguments
        )
    return (model.eval() if mode == "eval" else model), arguments


def _cut(held: torch.Tensor, smaller: Smaller) -> torch.Tensor:
    sizes = [smaller.size(size) for size in held.shape]
    if smaller.batch is not None and sizes and held.shape[0] == smaller.batch[0]:
        sizes[0] = smaller.batch[1]
    if sizes == list(held.shape):
        return held
    return held[tuple(slice(0, size) for size in sizes)].clone()


def _cut_number(number: int, smaller: Smaller) -> int:
    return number if isinstance(number, bool) else smaller.size(number)


def _check_call(problem: Problem, model: nn.Module, arguments: tuple[Any, ...]) -> None:
    """Whether forward can be given what get_inputs gives.

    Raises:
        ProblemError: it takes another number of arguments, or one of them is nothing that a
            candidate could be given.
    """
    leaves = pytree.tree_leaves(arguments)
    for leaf in leaves:
        if not isinstance(leaf, _GIVEN):
            raise ProblemError(
                problem.name, f"get_inputs() holds a {type(leaf).__name__}, not a tensor"
            )
    try:
        inspect.signature(model.forward).bind(*arguments)
    except TypeError as error:
        raise ProblemError(
            problem.name,
            f"get_inputs() gives {len(arguments)} arguments, and forward does not take them: "
            f"{error}",
        ) from None
    if leaves and not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        kinds = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise ProblemError(
            problem.name, f"get_inputs() must give at least one tensor, found {kinds}"
        )
