"""FLOPs of operations that are no matrix products, by kind: what torch's own counter leaves out.

Source: profiling notes §B.1 (pointwise 1, transcendental 4 to 10, softmax 5, norms 7 to 8,
reduction 1, pool k², scan 1 for each element).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

import torch

TRANSCENDENTAL = 8.0
CHEAP_SPECIAL = 4.0
_PER_OUTPUT: dict[str, float] = {
    **dict.fromkeys(
        (
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log1p",
            "log10",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "div",
            "sigmoid",
            "silu",
            "hardswish",
        ),
        CHEAP_SPECIAL,
    ),
    **dict.fromkeys(
        (
            "tanh",
            "sin",
            "cos",
            "tan",
            "erf",
            "erfc",
            "gelu",
            "elu",
            "celu",
            "selu",
            "mish",
            "softplus",
            "pow",
            "log_sigmoid_forward",
            "atan",
            "asin",
            "acos",
            "sinh",
            "cosh",
        ),
        TRANSCENDENTAL,
    ),
}
"""Operation to FLOPs for each element of its output; other pointwise ones count 1."""
_PER_INPUT: dict[str, float] = {
    **dict.fromkeys(("_softmax", "_log_softmax", "logsumexp"), 5.0),
    **dict.fromkeys(
        (
            "native_layer_norm",
            "native_batch_norm",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_no_training",
            "_batch_norm_with_update",
            "cudnn_batch_norm",
            "native_group_norm",
            "_fused_rms_norm",
        ),
        8.0,
    ),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean", "linalg_vector_norm", "norm"), 3.0),
    **dict.fromkeys(
        (
            "sum",
            "mean",
            "amax",
            "amin",
            "max",
            "min",
            "prod",
            "argmax",
            "argmin",
            "any",
            "all",
            "cumsum",
            "cumprod",
            "logcumsumexp",
            "nll_loss_forward",
            "mv",
            "dot",
        ),
        1.0,
    ),
    "smooth_l1_loss": 3.0,
    "mse_loss": 3.0,
    "_cdist_forward": 3.0,
}
"""Operation to FLOPs for each element of its first tensor."""
_PRODUCTS = frozenset({"mv", "dot", "vdot", "addmv"})
"""Two FLOPs for each element of the greatest operand."""
_SORTS = frozenset({"sort", "topk", "argsort", "kthvalue", "median", "msort", "unique"})


def vector_flops(
    func: Any,  # noqa: ANN401 - torch's OpOverload, which has no public type
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    arguments: Sequence[object],
) -> float:
    """Return the FLOPs of one call of an operation.

    Args:
        func: the overload.
        inputs: its tensors, in order.
        outputs: what it gave.
        arguments: all of its positional arguments.
    """
    name = func._schema.name.partition("::")[2].rstrip("_").removesuffix(".out")
    read = inputs[0].numel() if inputs else 0
    written = outputs[0].numel() if outputs else 0
    if name in _PRODUCTS:
        return 2.0 * max((each.numel() for each in inputs), default=0)
    if "pool" in name:
        return float(written * _window(name, inputs, written, arguments))
    if name in _SORTS:
        return read * max(1.0, log2(max(read, 2)))
    if name in _PER_INPUT:
        return _PER_INPUT[name] * read
    if name in _PER_OUTPUT:
        return _PER_OUTPUT[name] * written
    return float(written) if torch.Tag.pointwise in func.tags else 0.0


def _window(
    name: str, inputs: Sequence[torch.Tensor], written: int, arguments: Sequence[object]
) -> float:
    """Elements that one output of a pooling reads."""
    if "adaptive" in name:
        return inputs[0].numel() / max(written, 1)
    kernel = arguments[1] if len(arguments) > 1 else None
    if not isinstance(kernel, list | tuple) or not kernel:
        return 1.0
    dims = 3 if "3d" in name else 1 if "1d" in name else 2
    sizes = [int(size) for size in kernel]
    return float(prod(sizes if len(sizes) > 1 else sizes * dims))
