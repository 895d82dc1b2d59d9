"""Constants that forward makes as tensors of no dimension: numbers in the calls that read them."""

from __future__ import annotations

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.graph import Aten, Builder, aten, replace, shape, tensor, tidy

_TWO_OPERANDS = frozenset(
    (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.pow.Tensor_Tensor)
)
_CLAMPS = {
    aten.minimum.default: aten.clamp_max.default,
    aten.min.other: aten.clamp_max.default,
    aten.maximum.default: aten.clamp_min.default,
    aten.max.other: aten.clamp_min.default,
}
_COPIES = frozenset((aten.lift_fresh_copy.default, aten.clone.default, aten.detach.default))


def numbers_for_literals(
    module: fx.GraphModule, literals: dict[str, torch.Tensor], *, mode: FakeTensorMode
) -> dict[str, torch.Tensor]:
    """Write literals of one element as numbers where the result keeps its shape and dtype.

    Returns:
        The literals that are still read.
    """
    for node in list(module.graph.nodes):
        value = literals.get(node.name) if node.op == "placeholder" else None
        if value is not None and value.dim() == 0:
            _replace_readers(module, node, value.item(), mode)
    tidy(module)
    used = {node.name for node in module.graph.nodes if node.op == "placeholder" and node.users}
    return {name: value for name, value in literals.items() if name in used}


def _replace_readers(
    module: fx.GraphModule,
    literal: fx.Node,
    number: Aten,
    mode: FakeTensorMode,
) -> None:
    for reader in list(literal.users):
        if reader.target in _COPIES:
            _replace_readers(module, reader, number, mode)
            continue
        make = Builder(module, reader, mode)
        new = _with_number(make, reader, literal, number)
        if new is None:
            continue
        same = shape(new) == shape(reader) and tensor(new).dtype == tensor(reader).dtype
        if same:
            replace(reader, new)
            module.graph.erase_node(reader)
        else:
            make.undo()


def _with_number(make: Builder, reader: fx.Node, literal: fx.Node, number: Aten) -> fx.Node | None:
    if len(reader.args) < 2 or reader.args[0] is reader.args[1]:
        return None
    left, right = reader.args[:2]
    if reader.target in _CLAMPS:
        # The bound of a clamp is a number; NaN in the tensor is passed on by both.
        other = left if right is literal else right
        return make(_CLAMPS[reader.target], other, number)
    if reader.target not in _TWO_OPERANDS:
        return None
    if right is literal:
        if reader.target is aten.pow.Tensor_Tensor:
            return make(aten.pow.Tensor_Scalar, left, number)
        return make.like(reader, left, number)
    if reader.target in (aten.add.Tensor, aten.mul.Tensor) and not reader.kwargs:
        return make(reader.target, right, number)
    return None
