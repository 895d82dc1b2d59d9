"""One map of the tensor language as a C++ expression."""

from __future__ import annotations

import math

import torch

from kopt.actors.rewriter.codegen.ir import INFIX, Const, Map, Unsupported

TYPES = {
    torch.float32: "float",
    torch.float16: "float",
    torch.bfloat16: "float",
    torch.float64: "double",
    torch.int64: "int64_t",
    torch.int32: "int32_t",
    torch.int16: "int16_t",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.bool: "bool",
}
"""C++ types in which each dtype is computed."""
HALVES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
"""Dtypes that are only stored, as 16 bits; `half_source` defines the way there and back."""
BLOCKWISE = frozenset({torch.float16})
"""Halves whose conversion has instructions that compilers do not find in a loop by themselves."""

PLAIN = frozenset({"neg", "not", "where", "cast", "max", "min", *INFIX})
"""Ops that need no function of their own (or only the always present k_max, k_min)."""


def c_type(dtype: torch.dtype) -> str:
    """Return the C++ type.

    Raises:
        Unsupported: the dtype is not computed on a CPU here.
    """
    if dtype not in TYPES:
        raise Unsupported(f"{dtype} on a CPU")
    return TYPES[dtype]


def stored_type(dtype: torch.dtype) -> str:
    """Return the C++ type of a tensor's elements.

    Raises:
        Unsupported: the dtype is not computed on a CPU here.
    """
    return "uint16_t" if dtype in HALVES else c_type(dtype)


def fetched(dtype: torch.dtype, element: str) -> str:
    """Return an element of a tensor, as C++ computes with it."""
    return f"k_from_{HALVES[dtype]}({element})" if dtype in HALVES else element


def stored(dtype: torch.dtype, number: str) -> str:
    """Return a number as an element of a tensor holds it."""
    return f"k_to_{HALVES[dtype]}({number})" if dtype in HALVES else number


def literal(const: Const, *, wide: bool = False) -> str:
    """Return a number as C++; `wide` keeps a float32 constant in float64."""
    kind = "double" if wide and const.dtype == torch.float32 else c_type(const.dtype)
    number = const.number
    if kind == "bool":
        return "true" if number else "false"
    if kind in ("float", "double"):
        number = float(number)
        if math.isnan(number):
            return f"({kind})NAN"
        if math.isinf(number):
            return f"({kind}){'-' if number < 0 else ''}INFINITY"
        # Round here as torch rounds a Python number: to float32 once.
        if kind == "float":
            number = float(torch.tensor(number, dtype=torch.float32))
            if math.isinf(number):
                return f"(float){'-' if number < 0 else ''}INFINITY"
            return f"{number!r}f"
        return repr(number)
    return f"({kind}){int(number)}LL"


def expression(value: Map, args: list[str], *, kind: str) -> str:
    """Return the C++ expression of a map of type `kind`, given those of its arguments."""
    op = value.op
    if op == "cast":
        return f"({args[0]} != 0)" if kind == "bool" else f"({kind}){args[0]}"
    if op == "neg":
        return f"-{args[0]}"
    if op == "not":
        return f"!{args[0]}"
    if op == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if op in INFIX:
        return f"{args[0]} {INFIX[op]} {args[1]}"
    return f"k_{op}({', '.join(args)})"
