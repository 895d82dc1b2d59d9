"""One map of the tensor language as a Triton expression."""

from __future__ import annotations

import math

import torch

from kopt.actors.rewriter.codegen.gpu.math_source import TEXTS
from kopt.actors.rewriter.codegen.ir import INFIX, Const, Map, Unsupported

TYPES = {
    torch.float64: "tl.float64",
    torch.float32: "tl.float32",
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.int64: "tl.int64",
    torch.int32: "tl.int32",
    torch.int16: "tl.int16",
    torch.int8: "tl.int8",
    torch.uint8: "tl.uint8",
    torch.bool: "tl.int1",
}
NATIVE = {"sqrt": "tl.sqrt_rn", "rsqrt": "tl.rsqrt", "floor": "tl.floor", "ceil": "tl.ceil"}
NATIVE |= {"abs": "tl.abs"}
WIDE = {"sqrt": "tl.sqrt", "exp": "tl.exp", "log": "tl.log"}
"""What float64 takes; the rest of it comes from libdevice."""
LIBDEVICE = {
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "log2": "log2",
    "log10": "log10",
    "round": "rint",
    "pow": "pow",
    "expm1": "expm1",
    "log1p": "log1p",
    "tanh": "tanh",
    "erf": "erf",
    "trunc": "trunc",
}
FAST = {"exp": "tl.exp", "log": "tl.log", "sigmoid": "tl.sigmoid"}
"""Hardware approximations, for schedules that allow them."""


def held_type(dtype: torch.dtype) -> str:
    """Return the Triton type in which values of a dtype are computed."""
    return "tl.float32" if dtype in (torch.float16, torch.bfloat16) else TYPES[dtype]


def literal(const: Const) -> str:
    """Return a number as Triton source."""
    number = const.number
    if const.dtype == torch.bool:
        return "True" if number else "False"
    if const.dtype.is_floating_point:
        number = float(number)
        if math.isnan(number):
            return 'float("nan")'
        if math.isinf(number):
            return 'float("inf")' if number > 0 else '-float("inf")'
        return repr(number)
    return repr(int(number))


def expression(
    value: Map, args: list[str], *, prefix: str, wide: bool, fast: bool
) -> tuple[str, str | None]:
    """Return the expression of a map, and the helper or "libdevice" that it needs, if any.

    Args:
        value: the map.
        args: expressions of its arguments.
        prefix: of the helpers' names.
        wide: whether it is computed in float64.
        fast: whether hardware approximations may serve.

    Raises:
        Unsupported: there is no form.
    """
    op = value.op
    double = wide or value.dtype == torch.float64
    if op == "cast":
        if value.dtype == torch.bool:
            return f"{args[0]} != 0", None
        return f"{args[0]}.to({'tl.float64' if double else held_type(value.dtype)})", None
    if op == "neg":
        return f"-{args[0]}", None
    if op == "not":
        return f"{args[0]} == 0", None
    if op == "where":
        return f"tl.where({args[0]}, {args[1]}, {args[2]})", None
    if op == "div" and not double and not fast:
        return f"tl.div_rn({args[0]}, {args[1]})", None
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}", None
    if op in ("max", "min"):
        return f"_{prefix}_{op}({args[0]}, {args[1]})", op
    if double and op in WIDE:
        return f"{WIDE[op]}({args[0]})", None
    if op in NATIVE:
        return f"{NATIVE[op]}({args[0]})", None
    if fast and not double and op in FAST:
        return f"{FAST[op]}({args[0]})", None
    if double and op == "sigmoid":
        return f"1.0 / (1.0 + tl.exp(-{args[0]}))", None
    if op in TEXTS and not double:
        return f"_{prefix}_{op}({args[0]})", op
    if op in LIBDEVICE:
        return f"libdevice.{LIBDEVICE[op]}({', '.join(args)})", "libdevice"
    raise Unsupported(f"{op} on a GPU")
