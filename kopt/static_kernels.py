"""Kernels: the names of what a candidate's text defines to run on the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kopt.static_names import Names, constant_text

KERNEL_DECORATORS = (
    "triton.jit",
    "triton.runtime.jit.jit",
    "triton.experimental.gluon.jit",
    "helion.kernel",
    "helion.jit",
    "cutlass.cute.kernel",
    "cutlass.cute.jit",
)
# Every repetition is bounded, so that no text makes gate 1 slow.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(
    r"(?:__launch_bounds__|__attribute__|__cluster_dims__)"
    r"\s{0,8}\((?:[^()]|\([^()]{0,200}\)){0,200}\)+"
)
_GLOBAL = re.compile(r"__global__\s[\w:<>,*&\s]{0,200}?\b(?P<name>\w+)\s{0,80}\(")
_EXPORTED = re.compile(r'extern\s+"C"\s+[\w\s*&:]{0,200}?\b(?P<name>\w+)\s{0,80}\(')
_BLOCK = re.compile(r'extern\s+"C"\s*\{')
_FUNCTION = re.compile(
    r"^[ \t]*(?!static\b|inline\b)(?:\w+[\s*&]+){1,8}(?P<name>\w+)"
    r"\s{0,80}\([^;{}]{0,4000}\)\s{0,80}\{",
    re.MULTILINE,
)


def device_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text without comments) of every literal that holds C, C++ or CUDA."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp) or id(node) in inside:
            continue
        text = constant_text(node)
        if "#include" in text or "__global__" in text or 'extern "C"' in text:
            inside.update(id(part) for part in ast.walk(node))
            yield getattr(node, "lineno", 0), _ATTRIBUTE.sub(" ", _COMMENT.sub(" ", text))


def kernel_names(tree: ast.AST, *, names: Names) -> tuple[str, ...]:
    """Return the names of all kernels, in order of appearance, each once.

    Triton, Helion and CuTe functions by their decorator; `__global__` functions and exported C
    functions of the literals.
    """
    found = [
        (node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(_decorator(entry, names) in KERNEL_DECORATORS for entry in node.decorator_list)
    ]
    for line, text in device_texts(tree):
        found += [(line, name) for name in c_kernel_names(text)]
    ordered = sorted(found, key=lambda entry: entry[0])  # stable: texts keep their own order
    return tuple(dict.fromkeys(name for _, name in ordered))


def c_kernel_names(text: str) -> list[str]:
    """Return the `__global__` and exported functions of a C text without comments, in order."""
    found = [(match.start(), match["name"]) for match in _GLOBAL.finditer(text)]
    found += [(match.start(), match["name"]) for match in _EXPORTED.finditer(text)]
    closed = 0
    for block in _BLOCK.finditer(text):
        if block.start() < closed:
            continue  # within the last one
        closed = _closing(text, block.end())
        body = text[block.end() : closed]
        found += [
            (block.end() + match.start(), match["name"]) for match in _FUNCTION.finditer(body)
        ]
    return [name for _, name in sorted(found)]


def _closing(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _decorator(node: ast.expr, names: Names) -> str:
    return names.path(node.func if isinstance(node, ast.Call) else node)
