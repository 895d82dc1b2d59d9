"""Only some elements of a result are used: compute only those."""

from __future__ import annotations

from typing import Any

from torch import fx

from kopt.actors.rewriter.graph import Builder, argument, aten, has_tensor, is_call, shape
from kopt.actors.rewriter.rules.linear_reduce import linear
from kopt.actors.rewriter.rules.operands import aligned
from kopt.actors.rewriter.rules.rule import rule

PICKS = (aten.slice.Tensor, aten.select.int)
_UNARY_NAMES = (
    "relu sigmoid tanh exp gelu silu mish hardswish abs neg sqrt rsqrt log square erf "
    "leaky_relu elu softplus relu6 hardtanh hardsigmoid clamp"
)
UNARY = frozenset(getattr(aten, name).default for name in _UNARY_NAMES.split())
BINARY = (aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor)


def _picked_dim(node: fx.Node) -> int:
    return int(argument(node, "dim") % len(shape(node.args[0])))  # type: ignore[arg-type]


def _pick(make: Builder, node: fx.Node, value: fx.Node, dim: int) -> fx.Node:
    return make.like(node, value, dim, *node.args[2:])


@rule(*PICKS)
def pick_before_linear(make: Builder, node: fx.Node) -> fx.Node | None:
    """(x·Wᵀ + b)[rows] = x[rows]·Wᵀ + b, and some outputs need some rows of W only."""
    inner = node.args[0]
    product = linear(inner)
    assert isinstance(inner, fx.Node)
    if product is None or len(inner.users) != 1:
        return None
    dim = _picked_dim(node)
    if dim != len(shape(inner)) - 1:
        rows = _pick(make, node, product.x, dim)
        return make(aten.linear.default, rows, product.weight, product.bias)
    if node.target is aten.select.int:
        return None
    weight = _pick(make, node, product.weight, 0)
    bias = None if product.bias is None else _pick(make, node, product.bias, 0)
    return make(aten.linear.default, product.x, weight, bias)


@rule(*PICKS)
def pick_before_elementwise(make: Builder, node: fx.Node) -> fx.Node | None:
    """f(y)[part] = f(y[part]) for element-wise f."""
    inner = node.args[0]
    if not isinstance(inner, fx.Node) or len(inner.users) != 1 or inner.op != "call_function":
        return None
    dim, rank = _picked_dim(node), len(shape(inner))
    target: Any = inner.target
    if target in UNARY:
        assert isinstance(inner.args[0], fx.Node)
        return make.like(inner, _pick(make, node, inner.args[0], dim), *inner.args[1:])
    if target not in BINARY or inner.kwargs:
        return None
    operands: list[Any] = []
    for arg in inner.args:
        if not has_tensor(arg):
            operands.append(arg)
            continue
        assert isinstance(arg, fx.Node)
        own = len(shape(arg))
        if own < rank and node.target is aten.select.int and own > rank - 1 - dim:
            return None
        place = dim - (rank - own)
        if aligned(arg, rank)[dim] == 1 and place >= 0:
            if node.target is aten.select.int:
                kept = [size for d, size in enumerate(shape(arg)) if d != place]
                arg = make(aten.reshape.default, arg, kept)
        elif place >= 0:
            arg = _pick(make, node, arg, place)
        operands.append(arg)
    made = make(target, *operands)
    return made if shape(made) == shape(node) else None


@rule(*PICKS)
def pick_before_row_wise(make: Builder, node: fx.Node) -> fx.Node | None:
    """norm(y)[rows] = norm(y[rows]) for layer norms and softmaxes along other dimensions."""
    inner = node.args[0]
    if not is_call(inner, aten.layer_norm.default, aten.softmax.int, aten.log_softmax.int):
        return None
    assert isinstance(inner, fx.Node)
    if len(inner.users) != 1:
        return None
    dim, rank = _picked_dim(node), len(shape(inner))
    target: Any = inner.target
    y = inner.args[0]
    assert isinstance(y, fx.Node)
    if target is aten.layer_norm.default:
        if dim >= rank - len(argument(inner, "normalized_shape")):
            return None
        return make.like(inner, _pick(make, node, y, dim), *inner.args[1:])
    along = argument(inner, "dim") % rank
    if along == dim:
        return None
    if node.target is aten.select.int and along > dim:
        along -= 1
    return make.like(inner, _pick(make, node, y, dim), along, *inner.args[2:])


@rule(aten.select.int)
def last_of_running_sum(make: Builder, node: fx.Node) -> fx.Node | None:
    """The last element of a running sum is the sum."""
    inner = node.args[0]
    if not is_call(inner, aten.cumsum.default) or inner.kwargs:  # type: ignore[union-attr]
        return None
    assert isinstance(inner, fx.Node)
    y = inner.args[0]
    assert isinstance(y, fx.Node)
    dim, size = _picked_dim(node), shape(inner)[_picked_dim(node)]
    if inner.args[1] % len(shape(y)) != dim or argument(node, "index") not in (-1, size - 1):  # type: ignore[operator]
        return None
    if y.meta["val"].dtype != node.meta["val"].dtype or not y.meta["val"].is_floating_point():
        return None
    return make.reduce(aten.sum.dim_IntList, y, [dim], keepdim=False)
