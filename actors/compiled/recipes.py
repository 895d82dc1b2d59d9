"""How a captured graph is called and what forward makes of its results, as plain values."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kopt.actors.compiled.capture import Captured
from kopt.actors.compiled.obstacles import Obstacle
from kopt.actors.compiled.owners import owners_of, plain_path, spelling, tensor_paths
from kopt.compiled.recipe import Argument, Constant, Given, Path, Recipe


def make_recipe(captured: Captured, *, file: ModuleType, given: Sequence[Any]) -> Recipe:
    """Return how the one compiled graph of a model is called.

    Args:
        captured: with the arguments and results of its last call.
        file: the module that defines the model.
        given: forward's arguments in that call.

    Raises:
        Obstacle: an argument is nobody's, or forward's result is not to be made of the graph's.
    """
    (piece,) = captured.pieces
    owners = owners_of(piece.arguments, model=captured.model, file=file, given=given)
    arguments: list[Argument] = []
    for name, owner in zip(piece.code.arguments, owners, strict=True):
        if owner is None:
            raise Obstacle(
                "not_stitchable",
                f"{name} of the compiled graph is no weight, buffer, argument or constant",
            )
        arguments.append(owner)
    result = spelling(captured.result, results=piece.results, given=given)
    if result is None:
        raise Obstacle(
            "not_stitchable",
            f"forward gives a {type(captured.result).__name__} that is not made of the compiled "
            "graph's results alone",
        )
    device = next((t.device.type for t in piece.arguments if isinstance(t, torch.Tensor)), "cpu")
    return Recipe(
        source=piece.source,
        arguments=tuple(arguments),
        given=tuple(
            Given(
                path=path,
                size=tuple(held.shape),
                stride=held.stride(),
                dtype=str(held.dtype).removeprefix("torch."),
            )
            for path, held in tensor_paths(given)
        ),
        plain=tuple(_plain(given)),
        constants=tuple(_constant(name, held) for name, held in piece.constants.items()),
        result=result,
        is_training=captured.model.training,
        device=device,
    )


def _plain(given: Sequence[Any]) -> list[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = []
    for path, held in pytree.tree_flatten_with_path(list(given))[0]:
        if isinstance(held, torch.Tensor):
            continue
        keys = plain_path(path)
        if keys is None or not (held is None or isinstance(held, bool | int | float | str)):
            raise Obstacle("not_stitchable", f"forward is given a {type(held).__name__}")
        found.append((keys, held))
    return found


def _constant(name: str, held: torch.Tensor) -> Constant:
    flat = held.detach().cpu().contiguous().flatten().view(torch.uint8)
    return Constant(
        name=name,
        size=tuple(held.shape),
        dtype=str(held.dtype).removeprefix("torch."),
        data=base64.b64encode(flat.numpy().tobytes()).decode("ascii"),
    )
