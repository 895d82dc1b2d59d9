"""The family of a problem: what kind of computation it is, told from what its source calls."""

from __future__ import annotations

import ast
import re

from kopt.data.problems.contract import module_constant

FAMILY_CONSTANT = "FAMILY"

FAMILIES: tuple[tuple[str, str], ...] = (
    ("attention", r"scaled_dot_product_attention|Multihead\w*"),
    ("recurrent", r"(LSTM|GRU|RNN)(Cell)?"),
    ("conv", r"[Cc]onv(_transpose|Transpose)?[123]d|Lazy[Cc]onv\w*"),
    ("linear", r"(Lazy)?(Bil|L|l)inear"),
    ("matmul", r"b?mm|matmul|einsum|bmm|addmm|baddbmm|tensordot|@"),
    ("loss", r"\w*([Ll]oss|cross_entropy|kl_div)\w*"),
    ("norm", r"\w*(Norm|_norm|norm)(1d|2d|3d)?"),
    ("softmax", r"\w*([Ss]oft(max|min)|logsumexp)"),
    ("scan", r"cum(sum|prod|max|min)|logcumsumexp"),
    ("pool", r"\w*([Pp]ool)\w*"),
    ("reduction", r"sum|mean|max|min|amax|amin|prod|argmax|argmin|var|std"),
)
"""Family and what its calls are named, the most telling first."""


def family_of(source: str) -> str:
    """Return the family: the file's own FAMILY constant, or what its calls say.

    The first of FAMILIES that any call matches; `elementwise` where none does, and an empty text
    where the source does not parse.
    """
    stated = module_constant(source, FAMILY_CONSTANT)
    if stated is not None:
        return stated
    try:
        called = _called_names(ast.parse(source))
    except (SyntaxError, ValueError):
        return ""
    for family, pattern in FAMILIES:
        if any(re.fullmatch(pattern, name) for name in called):
            return family
    return "elementwise"


def _called_names(module: ast.Module) -> set[str]:
    """Last parts of the names called in classes (`F.conv2d` gives `conv2d`), and `@`."""
    names = set()
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    for node in (leaf for part in classes for leaf in ast.walk(part)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names.add(node.func.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.add(node.func.id)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            names.add("@")
    return names
