"""Output trees: the leaves of what a forward returned, and whether two trees have one form.

Source: exploits F12 (tuple outputs), 10 (nothing compared), 29 and 50 (shape and dtype).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch


def flatten(tree: object) -> list[tuple[str, object]]:
    """Return the leaves of an output with their paths, in order.

    A tensor alone has the path ``; others `[0]`, `['mask'][1]`, …. Dicts go by sorted key.
    """
    return _leaves(tree, path="")


def _leaves(tree: object, *, path: str) -> list[tuple[str, object]]:
    leaves: list[tuple[str, object]] = []
    if isinstance(tree, Mapping):
        for key in sorted(tree, key=str):
            leaves += _leaves(tree[key], path=f"{path}[{key!r}]")
        return leaves
    if isinstance(tree, list | tuple):
        for position, item in enumerate(tree):
            leaves += _leaves(item, path=f"{path}[{position}]")
        return leaves
    return [(path, tree)]


def structure_failure(candidate: object, *, reference: object) -> str | None:
    """Return why an output is not of the reference's form, or None.

    Compared are the containers (a list and a tuple are alike), the paths, and for tensors the
    shape, dtype and device kind; the line names the first difference.
    """
    return _difference(candidate, reference, path="")


def _difference(candidate: object, reference: object, *, path: str) -> str | None:
    expected, found = _form(reference), _form(candidate)
    if expected != found:
        return f"output{path}: expected {expected}, found {found}"
    if isinstance(reference, Mapping) and isinstance(candidate, Mapping):
        for key in sorted(reference, key=str):
            failure = _difference(candidate[key], reference[key], path=f"{path}[{key!r}]")
            if failure is not None:
                return failure
    elif isinstance(reference, list | tuple) and isinstance(candidate, list | tuple):
        for position, (ours, theirs) in enumerate(zip(candidate, reference, strict=True)):
            failure = _difference(ours, theirs, path=f"{path}[{position}]")
            if failure is not None:
                return failure
    return None


def _form(tree: object) -> str:
    """Return in words what must agree before values are looked at."""
    if isinstance(tree, torch.Tensor):
        dtype = str(tree.dtype).removeprefix("torch.")
        return f"a {dtype} tensor of shape {tuple(tree.shape)} on {tree.device.type}"
    if isinstance(tree, Mapping):
        return f"a dict of [{', '.join(sorted(map(repr, tree)))}]"
    if isinstance(tree, list | tuple):
        return f"{len(tree)} outputs"
    return f"a {type(tree).__name__}"
