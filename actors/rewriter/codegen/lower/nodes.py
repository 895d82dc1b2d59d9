"""One fx node to values: by the table, or else by what torch's own decomposition makes of it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from kopt.actors.rewriter.codegen.builder import Builder
from kopt.actors.rewriter.codegen.formula import Expr
from kopt.actors.rewriter.codegen.ir import Unsupported, Value
from kopt.actors.rewriter.codegen.lower.creators import created
from kopt.actors.rewriter.codegen.lower.table import LOWERINGS, Argument, Context

Env = dict[fx.Node, Value | tuple[Value | None, ...]]
"""What each node has been lowered to; a node that is missing is read from memory."""

KEPT = frozenset(
    [
        "linear",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "addbmm",
        "mv",
        "dot",
        "einsum",
        "bilinear",
        "convolution",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "max_pool2d_with_indices",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "_adaptive_avg_pool2d",
        "embedding",
        "sort",
        "topk",
        "cat",
        "stack",
        "scaled_dot_product_attention",
        "lstm",
        "gru",
        "rnn_tanh",
        "upsample_nearest2d",
        "upsample_bilinear2d",
        "grid_sampler",
        "index",
        "gather",
        "scatter",
        "pad",
        "constant_pad_nd",
        "dropout",
        "native_dropout",
        "bernoulli",
        "rand",
        "randn",
        "arange",
        "full",
        "zeros",
        "ones",
    ]
)
"""Ops whose library call is not to be taken apart (torch's pieces are slower or unsupported)."""


def lower(
    builder: Builder, node: fx.Node, env: Mapping[fx.Node, Value | tuple[Value | None, ...]]
) -> Value | tuple[Value | None, ...]:
    """Write one call of an ATen op as values.

    Args:
        builder: makes the values.
        node: a `call_function` node with fake tensors in `meta["val"]`.
        env: values of nodes computed in the same kernel; every other input becomes a load, unless
            it is made of numbers alone.

    Raises:
        Unsupported: the op has no form here.
    """
    if node.op != "call_function":
        raise Unsupported(f"{node.op} {node.name}")
    if node.target is operator.getitem:
        return _item(node, env)
    meta = node.meta.get("val")
    first = meta[0] if isinstance(meta, tuple | list) else meta
    if not isinstance(first, torch.Tensor) or first.layout != torch.strided:
        raise Unsupported(f"{node.target}: no dense tensor")
    context = Context(
        builder=builder,
        out_shape=tuple(int(size) for size in first.shape),
        out_dtype=first.dtype,
    )

    def operand(arg: fx.Node) -> Any:  # noqa: ANN401 -- an ATen argument
        made = env.get(arg)
        if isinstance(made, tuple):
            raise Unsupported("a tuple as an operand")
        if made is None:
            held = arg.meta.get("val")
            if not isinstance(held, torch.Tensor):
                raise Unsupported(f"{arg.name} is no tensor")
            return created(builder, arg) or Expr(builder, builder.load(arg))
        return Expr(builder, made)

    args, kwargs = fx.map_arg((node.args, node.kwargs), operand)
    lowering = LOWERINGS.get(str(node.target))
    if lowering is None:
        return _decomposed(builder, node, args, kwargs)
    return _checked(node, lowering(context, *args, **kwargs))


def _item(node: fx.Node, env: Mapping[fx.Node, Any]) -> Value:
    source, index = node.args
    if not isinstance(source, fx.Node) or not isinstance(index, int):
        raise Unsupported("an item that is not a number")
    items = env.get(source)
    item: Value | None = items[index] if isinstance(items, tuple) else None
    if item is None:
        raise Unsupported("an item of a tuple that torch made")
    return item


def _checked(node: fx.Node, made: Argument) -> Value | tuple[Value | None, ...]:
    meta = node.meta["val"]
    if isinstance(made, tuple):
        pairs = zip(made, meta, strict=True)
        return tuple(None if m is None else _fits(node, m, val) for m, val in pairs)
    return _fits(node, made, meta)


def _fits(node: fx.Node, made: Expr, meta: torch.Tensor) -> Value:
    if made.shape != tuple(meta.shape) or made.dtype != meta.dtype:
        raise Unsupported(
            f"{node.target} gave {made.dtype}{made.shape}, torch {meta.dtype}{tuple(meta.shape)}"
        )
    return made.value


def _decomposed(
    builder: Builder, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Value | tuple[Value | None, ...]:
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        raise Unsupported(f"{target}")
    if target._schema.is_mutable or target.__name__.split(".")[0] in KEPT:
        raise Unsupported(f"{target}")
    exprs = [arg for arg in pytree.tree_leaves((args, kwargs)) if isinstance(arg, Expr)]
    sources = [
        arg for arg in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(arg, fx.Node)
    ]
    fakes = [source.meta["val"] for source in sources]

    def call(*tensors: torch.Tensor) -> Any:  # noqa: ANN401 -- what the op gives
        supply = iter(tensors)
        real_args, real_kwargs = fx.map_arg((node.args, node.kwargs), lambda _: next(supply))
        return target(*real_args, **real_kwargs)

    traced = _trace(call, fakes, str(target))
    placeholders = [n for n in traced.graph.nodes if n.op == "placeholder"]
    inner: dict[fx.Node, Value | tuple[Value | None, ...]] = dict(
        zip(placeholders, (e.value for e in exprs), strict=True)
    )
    for inside in traced.graph.nodes:
        if inside.op == "call_function":
            if str(inside.target) == str(target):
                raise Unsupported(f"{target}")
            if any(n not in inner for n in inside.all_input_nodes):
                raise Unsupported(f"{target}: {inside.target} reads a constant tensor")
            inner[inside] = lower(builder, inside, inner)
        elif inside.op == "output":
            return _outputs(node, inside.args[0], inner)
        elif inside.op != "placeholder":
            raise Unsupported(f"{target} holds a constant tensor")
    raise Unsupported(f"{target}")


def _trace(call: Callable[..., Any], fakes: list[torch.Tensor], name: str) -> fx.GraphModule:
    if not fakes:
        raise Unsupported(name)
    try:
        return make_fx(call, decomposition_table=_decompositions())(*fakes)
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        raise Unsupported(f"{name}: {error}") from error


@functools.cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Return torch's own; it takes torch a tenth of a second to list them."""
    return dict(core_aten_decompositions())


def _outputs(
    node: fx.Node,
    returned: Argument,
    inner: Mapping[fx.Node, Any],
) -> Value | tuple[Value | None, ...]:
    if isinstance(returned, fx.Node):
        made: Value | tuple[Value | None, ...] = inner[returned]
        if isinstance(made, tuple):
            raise Unsupported("a tuple in place of a tensor")
        if made.shape != tuple(node.meta["val"].shape):
            raise Unsupported(f"{node.target}: another shape")
        return made
    return tuple(None if r is None else inner[r] for r in returned)
