"""How reductions and scans start, join and in which C++ type they are brought together."""

from __future__ import annotations

from kopt.actors.rewriter.codegen.cpp.expressions import c_type
from kopt.actors.rewriter.codegen.ir import Reduce, Scan, Unsupported

JOIN = {"sum": "k_add", "prod": "k_mul", "max": "k_max", "min": "k_min"}
"""C++ function that joins two partial results."""


def neutral(reduction: Reduce) -> str:
    """Return the C++ number that changes nothing in a reduction.

    Raises:
        Unsupported: the extreme of a dtype that has no name here.
    """
    if reduction.kind in ("sum", "prod"):
        return "0" if reduction.kind == "sum" else "1"
    kind = c_type(reduction.dtype)
    if kind in ("float", "double"):
        return "-INFINITY" if reduction.kind == "max" else "INFINITY"
    bits = {"int64_t": "INT64", "int32_t": "INT32"}.get(kind)
    if bits is None:
        raise Unsupported(f"an extreme of {kind}")
    return f"{bits}_MIN" if reduction.kind == "max" else f"{bits}_MAX"


def total_type(reduction: Reduce) -> str:
    """Return the C++ type in which partial results of a reduction are brought together."""
    kind = c_type(reduction.dtype)
    return "double" if kind == "float" and reduction.kind in ("sum", "prod") else kind


def scan_type(scan: Scan) -> str:
    """Return the C++ type of what a scan carries from step to step."""
    kind = c_type(scan.dtype)
    return "double" if kind == "float" else kind
