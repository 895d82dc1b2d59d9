"""Arguments and outputs as JSON: trees of plain values with tensors referred to by number.

Both sides use it; the trusted side never builds anything else than plain containers from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kopt.actors.child.memory import dtype_name

MAX_DEPTH = 8

Tree = Any
"""JSON form of a tree of values, as `encode` gives it. From a child it may be anything at all."""
Scalar = bool | int | float | str


class NotPlain(Exception):
    """A value has no plain form; the text says which."""


def encode(
    value: object,
    put: Callable[[torch.Tensor], int],
    *,
    by_key: bool = False,
    depth: int = 0,
) -> Tree:
    """Return the JSON form of a tree; `put` keeps a tensor and returns its number.

    Args:
        value: the tree.
        put: called for each tensor, in the order of the form.
        by_key: dicts by sorted key, so that equal outputs number their tensors equally; otherwise
            in their own order.
        depth: of the tree above.

    Raises:
        NotPlain: the tree holds something else than tensors, None, bools, numbers, strings,
            dtypes, lists, tuples and dicts, or is too deep.
    """
    if depth > MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}")

    def inner(item: object) -> Tree:
        return encode(item, put, by_key=by_key, depth=depth + 1)

    if isinstance(value, torch.Tensor):
        return {"tensor": put(value)}
    if value is None:
        return {"value": None}
    if isinstance(value, _SCALARS):
        return {"value": value if type(value) in _SCALARS else _base(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, list):
        return {"list": [inner(item) for item in value]}
    if isinstance(value, tuple):
        return {"tuple": [inner(item) for item in value]}
    if isinstance(value, dict):
        keys = sorted(value, key=str) if by_key else list(value)
        return {"dict": [[inner(key), inner(value[key])] for key in keys]}
    raise NotPlain(f"a {type(value).__name__}")


def decode(tree: Tree, get: Callable[[int], object], *, depth: int = 0) -> object:
    """Return the value of a JSON form; `get` gives what stands for a tensor's number.

    Raises:
        NotPlain: the form is none, or is too deep.
    """
    if depth > MAX_DEPTH:
        raise NotPlain(f"nested deeper than {MAX_DEPTH}")

    def inner(item: Tree) -> object:
        return decode(item, get, depth=depth + 1)

    match tree:
        case {"tensor": int(number)}:
            return get(number)
        case {"value": None | bool() | int() | float() | str() as value}:
            return value
        case {"dtype": str(name)} if isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        case {"list": list(items)}:
            return [inner(item) for item in items]
        case {"tuple": list(items)}:
            return tuple(inner(item) for item in items)
        case {"dict": list(pairs)}:
            try:
                return {inner(key): inner(item) for key, item in pairs}
            except (TypeError, ValueError) as error:  # no pair, or a key that cannot be one
                raise NotPlain(f"a dict of {str(pairs)[:100]}: {error}") from None
    raise NotPlain(f"form {str(tree)[:100]}")


_SCALARS = (bool, int, float, str)


def _base(value: Scalar) -> Scalar:
    """A subclass (numpy's float64, an IntEnum) as the base type that JSON knows."""
    for base in (bool, int, float, str):
        if isinstance(value, base):
            return base(value)
    raise NotPlain(f"a {type(value).__name__}")
