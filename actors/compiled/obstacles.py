"""What keeps a compiled model from being taken apart, each with its cause and a line."""

from __future__ import annotations

import torch
from torch import fx

from kopt.actors.compiled.capture import Captured, Piece
from kopt.compiled.record import Cause


class Obstacle(Exception):
    """A model that compiles, and cannot be taken apart; the compiled baseline is kept."""

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(cause, reason)
        self.cause = cause
        self.reason = reason


def obstacle_of(captured: Captured) -> Obstacle | None:
    """Return what stands in the way, or None."""
    if not captured.pieces:
        return Obstacle(
            "no_generated_kernels", "torch.compile made no graph of it: nothing runs on a device"
        )
    if len(captured.pieces) > 1 or captured.breaks:
        why = captured.breaks[0] if captured.breaks else "no reason was given"
        return Obstacle(
            "graph_breaks",
            f"the graph breaks into {len(captured.pieces)} piece(s), with Python between: {why}",
        )
    piece = captured.pieces[0]
    return _random(piece) or _dynamic(piece) or _opaque(piece)


def _dynamic(piece: Piece) -> Obstacle | None:
    sizes = [
        name
        for name, held in zip(piece.code.arguments, piece.arguments, strict=False)
        if not isinstance(held, torch.Tensor)
    ]
    if sizes:
        return Obstacle(
            "dynamic_shapes", f"{', '.join(sizes)} of the compiled graph are sizes, not tensors"
        )
    return None


def _random(piece: Piece) -> Obstacle | None:
    for node in piece.graph.graph.nodes:
        if _draws(node):
            return Obstacle(
                "random",
                f"{node.target} draws random numbers: two runs of the model do not agree",
            )
    return None


def _draws(node: fx.Node) -> bool:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if "inductor_seed" in target._schema.name or "inductor_random" in target._schema.name:
        return True
    return torch.Tag.nondeterministic_seeded in target.tags and not _drops_nothing(node, target)


def _drops_nothing(node: fx.Node, target: torch._ops.OpOverload) -> bool:
    """Whether an operation that may drop out drops nothing: attention has a chance of 0 mostly."""
    for place, argument in enumerate(target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[place] if place < len(node.args) else None
            chance = node.kwargs.get("dropout_p", given)
            return bool((argument.default_value if chance is None else chance) == 0)
    return False


def _opaque(piece: Piece) -> Obstacle | None:
    if not piece.code.kernels or not piece.code.launches:
        calls = len(piece.code.library_calls)
        return Obstacle(
            "no_generated_kernels",
            f"the compiled code has no kernels of its own, only {calls} library call(s)",
        )
    if piece.code.opaque:
        return Obstacle("not_stitchable", piece.code.opaque)
    return None
