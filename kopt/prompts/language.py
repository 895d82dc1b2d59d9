"""The language of a candidate's text, told from its structure: what it calls, imports and holds.

Words in comments and docstrings say nothing: they may speak of languages that the code does not
use. Where several are used, the one that decides how the candidate is built comes first: CUDA text
is compiled ahead, Triton is not; a kernel's language comes before that of the host code beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kopt.candidate import Language
from kopt.foreign_language import taken_languages, told_by_module
from kopt.prompts.parsing import parsed

ORDER: tuple[Language, ...] = ("helion", "cuda", "cute", "triton", "cpp")
"""Of those that a text uses, the first one is its language; one that uses none is `torch`."""

_MODULES: dict[str, Language] = {
    "helion": "helion",
    "cutlass": "cute",
    "cupy": "cuda",
    "pycuda": "cuda",
    "numba.cuda": "cuda",
    "triton": "triton",
}
"""Module (with all below it) to the language that importing it tells."""
_MARKS: tuple[tuple[str, Language], ...] = (
    ("__global__", "cuda"),
    ('extern "C"', "cpp"),
    ("#include", "cpp"),
)
"""What a string holds that is the text of a kernel."""
_EXTENSIONS: dict[str, Language] = {"CUDAExtension": "cuda", "CppExtension": "cpp"}
_SUFFIXES: tuple[tuple[str, Language], ...] = ((".cu", "cuda"), (".cpp", "cpp"), (".cc", "cpp"))
_WORDS = (
    *(mark for mark, _ in _MARKS),
    *_EXTENSIONS,
    "_sources",
    "load_inline",
    "cpp_extension",
    "import_module",
    "__import__",
)
"""Without any of these, imports alone tell the language."""
_IMPORT_LINE = re.compile(r"^[ \t]{0,40}(?:import|from)[ \t]{1,8}([\w.]{1,80})", re.MULTILINE)


def language_of(source: str) -> Language:
    """Return the language of a module text; `torch` where it holds no kernel of its own.

    A text that does not parse is told by its import lines and by the marks of C and CUDA in it.
    """
    return chosen_language(source, tree=parsed(source), declared=None)


def chosen_language(source: str, *, tree: ast.Module | None, declared: Language | None) -> Language:
    """Return the language of a module text whose author may have named one.

    The author's word counts where the text uses that language, or none: it tells apart what is
    written in several, and does not turn one into another.

    Args:
        source: the text.
        tree: of the text; None where it does not parse.
        declared: what its author named.
    """
    used = set(_by_text(source) if tree is None else _by_tree(source, tree))
    if declared is not None and (declared in used or not used):
        return declared
    order = (*taken_languages(), *ORDER)
    return next((language for language in order if language in used), "torch")


def _by_text(source: str) -> Iterator[Language]:
    for match in _IMPORT_LINE.finditer(source):
        yield from _of_module(match[1])
    for mark, language in _MARKS:
        if mark in source:
            yield language


def _by_tree(source: str, tree: ast.Module) -> Iterator[Language]:
    # Most texts hold nothing that only an expression tells: their statements are few to look at.
    if any(word in source for word in _WORDS):
        yield from _by_expressions(tree)
    for statement in _statements(tree):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield from _of_module(alias.name)
        elif isinstance(statement, ast.ImportFrom):
            yield from _of_module(statement.module or "")


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                waiting.extend(inner)


def _by_expressions(tree: ast.Module) -> Iterator[Language]:
    documentation: set[int] = set()
    for node in ast.walk(tree):  # from the top down: a statement comes before what is in it
        if isinstance(node, ast.Expr):
            documentation.add(id(node.value))  # a literal as a statement is text for people
        elif isinstance(node, ast.Constant) and id(node) not in documentation:
            for mark, language in _MARKS:
                if isinstance(node.value, str) and mark in node.value:
                    yield language
        elif isinstance(node, ast.Call):
            yield from _of_call(node)


def _of_module(module: str) -> Iterator[Language]:
    foreign = told_by_module(module)
    if foreign is not None:
        yield foreign
    for name, language in _MODULES.items():
        if module == name or module.startswith(f"{name}."):
            yield language


def _of_call(node: ast.Call) -> Iterator[Language]:
    called = ""
    if isinstance(node.func, ast.Name | ast.Attribute):
        called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    if called == "load_inline":
        given |= dict(zip(("name", "cpp_sources", "cuda_sources"), node.args, strict=False))
        yield "cpp"
    if "cuda_sources" in given and not _is_nothing(given["cuda_sources"]):
        yield "cuda"
    if "cpp_sources" in given:
        yield "cpp"
    if called in _EXTENSIONS:
        yield _EXTENSIONS[called]
    if called == "load" or called in _EXTENSIONS:
        for text in _strings(node):
            yield from (language for suffix, language in _SUFFIXES if text.endswith(suffix))
    if called in ("import_module", "__import__"):
        for text in _strings(node):
            yield from _of_module(text)


def _strings(node: ast.Call) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _is_nothing(node: ast.expr) -> bool:
    """Whether an argument is written out as nothing: None, "", [] or ()."""
    if isinstance(node, ast.List | ast.Tuple):
        return not node.elts
    return isinstance(node, ast.Constant) and not node.value
