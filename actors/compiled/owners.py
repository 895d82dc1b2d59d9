"""Whose each argument of a compiled graph is: found by identity, never by shape.

KernelOPT (App. B) takes arguments of equal shape and dtype for each other; here an argument is the
very tensor of the model, of its file, or of forward's arguments (profiling notes §F.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from kopt.compiled.recipe import Argument, Path, Spelling, Table

_TABLES: tuple[Table, ...] = ("_parameters", "_buffers", "__dict__")


def owners_of(
    tensors: Sequence[Any], *, model: nn.Module, file: ModuleType, given: Sequence[Any]
) -> list[Argument | None]:
    """Return whose each tensor is; None for a tensor of nobody's.

    Args:
        tensors: arguments of a compiled graph.
        model: that was compiled.
        file: the module that defines it.
        given: forward's arguments.
    """
    known: dict[int, Argument] = {}
    by_memory: dict[tuple[Any, ...], Argument] = {}
    for held, owner in _held(model, file, given):
        known.setdefault(id(held), owner)
        by_memory.setdefault(_memory(held), owner)
    return [
        known.get(id(each)) or by_memory.get(_memory(each))
        if isinstance(each, torch.Tensor)
        else None
        for each in tensors
    ]


def spelling(
    result: Any,  # noqa: ANN401 - what forward gives
    *,
    results: Sequence[Any],
    given: Sequence[Any],
) -> Spelling | None:
    """Return how forward's result is made of a graph's results; None where it cannot be told.

    Args:
        result: of forward.
        results: of the graph, in the same run.
        given: forward's arguments, in the same run.
    """
    if isinstance(result, torch.Tensor):
        return _tensor(result, results, given)
    if result is None or isinstance(result, bool | int | float | str):
        return {"value": result}
    if type(result) in (list, tuple):
        parts = [spelling(each, results=results, given=given) for each in result]
        kind = "list" if type(result) is list else "tuple"
        return None if any(each is None for each in parts) else {kind: parts}
    if type(result) is dict and all(isinstance(key, str | int) for key in result):
        items = [(k, spelling(v, results=results, given=given)) for k, v in result.items()]
        return None if any(v is None for _, v in items) else {"dict": [list(i) for i in items]}
    return None


def tensor_paths(given: Sequence[Any]) -> Iterator[tuple[Path, torch.Tensor]]:
    """Yield the tensors among forward's arguments, each with the way to it."""
    for path, held in pytree.tree_flatten_with_path(list(given))[0]:
        if isinstance(held, torch.Tensor):
            keys = plain_path(path)
            if keys is not None:
                yield keys, held


def plain_path(path: Sequence[Any]) -> Path | None:
    """Return a way into forward's arguments as indices and keys; None where it is none of them."""
    found: list[int | str] = []
    for each in path:
        key = getattr(each, "idx", getattr(each, "key", None))
        if not isinstance(key, int | str):
            return None
        found.append(key)
    return tuple(found)


def _held(
    model: nn.Module, file: ModuleType, given: Sequence[Any]
) -> Iterator[tuple[torch.Tensor, Argument]]:
    for path, held in tensor_paths(given):
        yield held, Argument(kind="input", path=path)
    for module_name, module in model.named_modules():
        for table in _TABLES:
            for name, held in (
                module.__dict__.items() if table == "__dict__" else getattr(module, table).items()
            ):
                if isinstance(held, torch.Tensor):
                    yield held, Argument(kind="state", module=module_name, table=table, name=name)
    for name, held in vars(file).items():
        if isinstance(held, torch.Tensor):
            yield held, Argument(kind="global", name=name)


def _memory(held: torch.Tensor) -> tuple[Any, ...]:
    """A tensor's memory, for what torch has wrapped anew on the way."""
    if not isinstance(held, torch.Tensor) or held.numel() == 0:
        return (id(held),)
    return (held.data_ptr(), tuple(held.shape), held.stride(), held.dtype, held.device)


def _tensor(result: torch.Tensor, results: Sequence[Any], given: Sequence[Any]) -> Spelling | None:
    for path, held in tensor_paths(given):
        if held is result:
            return {"input": list(path)}
    for number, made in enumerate(results):
        if not isinstance(made, torch.Tensor) or made.dtype != result.dtype:
            continue
        if _memory(made) == _memory(result) or made is result:
            return {"result": number}
        if made.numel() and made.untyped_storage().data_ptr() == (
            result.untyped_storage().data_ptr()
        ):
            return {
                "result": number,
                "size": list(result.shape),
                "stride": list(result.stride()),
                "offset": result.storage_offset(),
            }
    return None
