"""How an ATen call is written in Python: torch's own name for it where there is one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.graph import argument, aten

Render = Callable[[Any], str]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TORCH = _names(
    "abs acos acosh addmm amax amin any all argmax argmin asin asinh atan atan2 baddbmm bmm "
    "bucketize cat ceil clamp clamp_max clamp_min cos cosh cummax cummin cumprod cumsum diag "
    "diagonal div einsum eq erf erfc exp expm1 flip floor fmod full full_like gather ge gt "
    "hypot index_select isfinite isinf isnan le log log10 log1p log2 log_softmax logaddexp "
    "logical_and logical_not logical_or logsumexp lt matmul max maximum mean min minimum mul "
    "mv ne neg ones ones_like outer pow prod reciprocal relu remainder roll round rsqrt rsub "
    "sigmoid sign sin sinh softmax sort sqrt square stack std sub sum tan tanh topk tril "
    "triu trunc unbind var var_mean where zeros zeros_like sgn norm"
)
_FUNCTIONAL = _names(
    "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d elu selu "
    "celu gelu silu mish hardswish hardsigmoid hardtanh relu6 leaky_relu softplus prelu "
    "layer_norm group_norm max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d pad pixel_shuffle "
    "logsigmoid scaled_dot_product_attention"
)
_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_RENAMED = {"log_sigmoid": "logsigmoid"}
_DIFFERENT = frozenset(("norm", "std", "var", "var_mean", "max", "min", "sort", "div", "softmax"))
"""Names whose Python form takes other arguments than some of their overloads."""
_SAFE_OVERLOADS = frozenset(("max.dim", "min.dim", "sort.default", "softmax.int"))


def spell(node: fx.Node, render: Render) -> str:
    """Return a Python expression of a call.

    Args:
        node: a call in normal form.
        render: writes an argument.
    """
    if node.target is operator.getitem:
        source, index = node.args
        return f"{render(source)}[{render(index)}]"
    special = _SPECIAL.get(node.target)
    if special is not None:
        return special(node, render)
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    name, overload = target._schema.name.removeprefix("aten::"), target._overloadname
    if name in _INFIX and len(node.args) == 2 and not node.kwargs:
        return f"{render(node.args[0])} {_INFIX[name]} {render(node.args[1])}"
    if name in _COMPARE and len(node.args) == 2 and not node.kwargs:
        return f"{render(node.args[0])} {_COMPARE[name]} {render(node.args[1])}"
    arguments = _arguments(node, render)
    if target.namespace == "aten":
        if (name in _FUNCTIONAL or name in _RENAMED) and _fits_functional(node):
            return f"F.{_RENAMED.get(name, name)}({arguments})"
        plain = name not in _DIFFERENT or f"{name}.{overload}" in _SAFE_OVERLOADS
        if name in _TORCH and plain:
            return f"torch.{name}({arguments})"
    return f"torch.ops.{target.namespace}.{name}.{overload}({arguments})"


_BY_KEYWORD = _names(
    "dim keepdim dims approximate stride padding output_padding dilation groups eps kernel_size "
    "ceil_mode count_include_pad negative_slope min max unbiased descending correction"
)
"""Arguments that read better with their names, where the value alone says little."""

_NOT_IN_PYTHON = _names("cudnn_enable cudnn_enabled input_scale scale")
"""Arguments of ATen norms and elu that torch.nn.functional has not."""


def _arguments(node: fx.Node, render: Render) -> str:
    """Write all arguments, by position or by keyword; those with their defaults are left out."""
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    formals = target._schema.arguments
    parts: list[str] = []
    by_name = False
    for formal, value in zip(formals, node.args, strict=False):
        default = formal.has_default_value() and _equal(value, formal.default_value)
        own_step = formal.name == "stride" and "avg_pool" in target.__name__
        if default or (own_step and _equal(value, argument(node, "kernel_size"))):
            by_name = True
            continue
        text = render(_unlisted(formal.name, value))
        if by_name or (formal.name in _BY_KEYWORD and not isinstance(value, fx.Node)):
            by_name = True
            parts.append(f"{formal.name}={text}")
        else:
            parts.append(text)
    parts += [
        f"{name}={render(value)}"
        for name, value in node.kwargs.items()
        if not (name == "pin_memory" and not value)
    ]
    return ", ".join(parts)


def _equal(value: object, default: object) -> bool:
    if isinstance(value, list | tuple) and isinstance(default, list | tuple | int):
        listed = [default] * len(value) if isinstance(default, int) else list(default)
        return list(value) == listed
    if isinstance(value, fx.Node) or type(value) is not type(default):
        return False
    return bool(value == default)


_SPATIAL = _names("stride padding output_padding dilation kernel_size output_size")


def _unlisted(name: str, value: object) -> object:
    """Write dim=1 rather than dim=[1], and stride=2 rather than stride=[2, 2]."""
    if not isinstance(value, list | tuple) or any(isinstance(item, fx.Node) for item in value):
        return value
    single = name == "dim" and len(value) == 1
    if single or (name in _SPATIAL and value and len(set(value)) == 1):
        return value[0]
    return tuple(value)


def _fits_functional(node: fx.Node) -> bool:
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    given = zip(target._schema.arguments, node.args, strict=False)
    return all(
        formal.name not in _NOT_IN_PYTHON or _equal(value, formal.default_value)
        for formal, value in given
    )


def _reshape(node: fx.Node, render: Render) -> str:
    return f"{render(node.args[0])}.reshape({_numbers(node)})"


def _permute(node: fx.Node, render: Render) -> str:
    dims: Any = node.args[1]
    if list(dims) == [1, 0]:
        return f"{render(node.args[0])}.T"
    return f"{render(node.args[0])}.permute({_numbers(node)})"


def _numbers(node: fx.Node) -> str:
    listed: Any = node.args[1]
    return ", ".join(str(number) for number in listed) or "()"


def _expand(node: fx.Node, render: Render) -> str:
    return f"{render(node.args[0])}.expand({_numbers(node)})"


def _cast(node: fx.Node, render: Render) -> str:
    return f"{render(node.args[0])}.to({render(node.args[1])})"


def _contiguous(node: fx.Node, render: Render) -> str:
    wanted = node.kwargs.get("memory_format")
    text = "" if wanted is None else f"memory_format={render(wanted)}"
    return f"{render(node.args[0])}.contiguous({text})"


def _batch_norm(node: fx.Node, render: Render) -> str:
    def held(name: str) -> str:
        return render(argument(node, name))

    return (
        f"F.batch_norm({held('input')}, {held('running_mean')}, {held('running_var')}, "
        f"{held('weight')}, {held('bias')}, {held('training')}, {held('momentum')}, {held('eps')})"
    )


def _instance_norm(node: fx.Node, render: Render) -> str:
    parts = [render(argument(node, "input"))]
    for name in ("running_mean", "running_var", "weight", "bias"):
        if argument(node, name) is not None:
            parts.append(f"{name}={render(argument(node, name))}")  # noqa: PERF401
    defaults = (("use_input_stats", True), ("momentum", 0.1), ("eps", 1e-5))
    for name, default in defaults:
        if argument(node, name) != default:
            parts.append(f"{name}={render(argument(node, name))}")
    return f"F.instance_norm({', '.join(parts)})"


def _slice(node: fx.Node, render: Render) -> str:
    dim = argument(node, "dim") % node.args[0].meta["val"].dim()  # type: ignore[union-attr]
    start, end, step = (argument(node, name) for name in ("start", "end", "step"))
    parts = ["" if start in (None, 0) else str(start)]
    parts.append("" if end is None or end >= 2**62 else str(end))
    if step != 1:
        parts.append(str(step))
    return f"{render(node.args[0])}[{':, ' * dim}{':'.join(parts)}]"


def _select(node: fx.Node, render: Render) -> str:
    dim = argument(node, "dim") % node.args[0].meta["val"].dim()  # type: ignore[union-attr]
    return f"{render(node.args[0])}[{':, ' * dim}{argument(node, 'index')}]"


def _norm(node: fx.Node, render: Render) -> str:
    """Write layer_norm or group_norm, whose switch for cuDNN torch.nn.functional sets itself."""
    name = str(node.target).split(".")[1]
    second = "normalized_shape" if name == "layer_norm" else "num_groups"
    parts = [render(argument(node, "input")), render(argument(node, second))]
    for key in ("weight", "bias"):
        if argument(node, key) is not None:
            parts.append(f"{key}={render(argument(node, key))}")  # noqa: PERF401
    if argument(node, "eps") != 1e-5:
        parts.append(f"eps={render(argument(node, 'eps'))}")
    return f"F.{name}({', '.join(parts)})"


_SPECIAL: dict[Any, Callable[[fx.Node, Render], str]] = {
    aten.reshape.default: _reshape,
    aten.permute.default: _permute,
    aten.expand.default: _expand,
    aten.to.dtype: _cast,
    aten.contiguous.default: _contiguous,
    aten.batch_norm.default: _batch_norm,
    aten.instance_norm.default: _instance_norm,
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.layer_norm.default: _norm,
    aten.group_norm.default: _norm,
}
