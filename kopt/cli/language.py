"""The language of a candidate file, guessed from its text where the user does not say."""

from __future__ import annotations

import ast

from kopt.candidate import Language

MODULE_LANGUAGES: dict[str, Language] = {"triton": "triton", "helion": "helion", "cutlass": "cute"}
"""Top-level module whose import tells the language; the first in this order that is imported."""

CUDA_MARKS = ("__global__", "cuda_sources", "CUDAExtension", "cupy", "nvcc", ".cu")
CPP_MARKS = ('extern "C"', "cpp_sources", "ctypes", "CppExtension", "torch.utils.cpp_extension")


def guess_language(source: str) -> Language:
    """Return the language: by what the file imports, then by what its strings and names hold.

    `torch` where nothing says otherwise, also for a file that does not parse: gate 1 says why.
    """
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError):
        return "torch"
    imported = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            imported.add(node.module.split(".")[0])
    for name, language in MODULE_LANGUAGES.items():
        if name in imported:
            return language
    text = _code_text(module)
    if any(mark in text for mark in CUDA_MARKS):
        return "cuda"
    if any(mark in text for mark in CPP_MARKS):
        return "cpp"
    return "torch"


def _code_text(module: ast.Module) -> str:
    """The code without comments and docstrings, which may speak of languages it does not use."""
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = [*node.body[1:], ast.Pass()]
    # Strings as they are: unparse would escape the quotes of `extern "C"`.
    strings = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join([ast.unparse(module), *strings])
