"""What a candidate's text says, whatever its layout: equal for texts that differ in nothing else.

Python text is reduced to its syntax tree: blank lines, spaces between tokens, depth of indentation,
the layout of brackets and comments have no place in it, and every string is in it as it is. The C++
in a string is taken apart only where the string can go nowhere but to the compiler
(`kopt.actors.cache.native_layout`).

A text that may read itself (its own source, its line numbers) is taken as it is, byte for byte: so
is whatever does not parse. That is a tripwire and no proof: a program can hide how it gets at its
text. What such a one gains is the verdict on another text that was really judged, and
`kopt verify` measures again what is claimed.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings

from kopt.actors.cache.native_layout import plain_layout
from kopt.candidate import Candidate

MAX_BYTES = 50_000
"""Longer texts are taken as they are: parsing them would hold up the driver."""

_READS_ITSELF = re.compile(
    r"\b(?:inspect|linecache|tokenize|traceback|getsource\w*|findsource|_getframe\w*|currentframe"
    r"|f_lineno|tb_lineno|tb_frame|f_back|co_(?:code|consts|filename|firstlineno|lines|linetable"
    r"|lnotab|positions)|__code__|__file__|__loader__|__spec__|__dict__|__traceback__|get_data"
    r"|_current_frames|settrace|setprofile|exc_info|open|read_text|read_bytes|runpy|warn_explicit"
    r"|globals|locals|vars|jit\.(?:script\w*|interface|ignore|unused|export))\b"
)
"""Words of texts that may read themselves, in code, comments or strings. `torch.jit.script` reads
comments that state types."""
_TYPE_COMMENT = re.compile(r"#\s*type:")

_LOADER = "load_inline"
_LOADER_MODULE = "torch.utils.cpp_extension"
_TEXTS = ("cpp_sources", "cuda_sources")
_POSITIONS = (1, 2)
"""Of the same, where they are given without their names."""


def layout_free(candidate: Candidate) -> str:
    """Return a digest (64 hex digits) that is equal for texts that differ in layout alone.

    Equal digests of one language mean equal behaviour, as far as the module's docstring says.
    """
    source = candidate.source
    said = _syntax(source)
    form = "exact" if said is None else "syntax"
    text = source if said is None else said
    return hashlib.sha256(f"{form}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()


def _syntax(source: str) -> str | None:
    """Return the syntax tree as text; None where the text has to be taken as it is."""
    if len(source) > MAX_BYTES or _READS_ITSELF.search(source) or _TYPE_COMMENT.search(source):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes: the static check says so
            tree = ast.parse(source)
        native = _native_strings(tree)
        for constant in native:
            constant.value = plain_layout(str(constant.value))
        return ast.dump(tree, annotate_fields=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _native_strings(tree: ast.Module) -> list[ast.Constant]:
    """Return the strings that go to load_inline's compiler and nowhere else.

    Such a string stands in the call, alone or in a list, or is given at module level to a name that
    is assigned once in the whole text and read in such places alone.
    """
    if not _loader_is_torchs(tree):
        return []
    found: list[ast.Constant] = []
    read: dict[str, int] = {}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not _is_loader(call.func):
            continue
        given = [argument.value for argument in call.keywords if argument.arg in _TEXTS]
        given += [each for place, each in enumerate(call.args) if place in _POSITIONS]
        parts = [part for each in given for part in _parts(each)]
        found += [text for text in map(_text, parts) if text is not None]
        for part in parts:
            if isinstance(part, ast.Name):
                read[part.id] = read.get(part.id, 0) + 1
    for name, times in read.items():
        text = _only_text_of(tree, name=name, times_read=times)
        if text is not None:
            found.append(text)
    return found


def _parts(given: ast.expr) -> list[ast.expr]:
    return list(given.elts) if isinstance(given, ast.List | ast.Tuple) else [given]


def _text(node: ast.AST) -> ast.Constant | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node
    return None


def _is_loader(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name):
            return name == _LOADER
        case ast.Attribute(attr=name, value=ast.Name(id=owner) | ast.Attribute(attr=owner)):
            return (owner, name) == ("cpp_extension", _LOADER)
        case _:
            return False


def _loader_is_torchs(tree: ast.Module) -> bool:
    """Whether `load_inline` is torch's, and neither it nor its module is given another meaning."""
    imported = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" or (alias.asname == _LOADER and alias.name != _LOADER):
                    return False
                if _LOADER in (alias.name, alias.asname):
                    if node.module != _LOADER_MODULE:
                        return False
                    imported = True
                if "cpp_extension" in (alias.name, alias.asname):
                    if node.module != "torch.utils":
                        return False
                    imported = True
        elif isinstance(node, ast.Import):
            imported |= any(alias.name == _LOADER_MODULE for alias in node.names)
        elif _binds(node, _LOADER) or _binds(node, "cpp_extension"):
            return False
    return imported


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node gives a name, or an attribute of that name, another meaning."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name == name
        case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
            return bound == name
        case ast.Attribute(attr=bound, ctx=ast.Store() | ast.Del()):
            return bound == name
        case ast.arg(arg=bound):
            return bound == name
        case ast.Constant(value=str(text)):
            return text == name  # setattr, globals()["load_inline"] = …
        case _:
            return False


def _only_text_of(tree: ast.Module, *, name: str, times_read: int) -> ast.Constant | None:
    """Return the string of a name that has no other value and no other reader."""
    assigned = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    ]
    uses = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == name)
        or _binds(node, name)
        or (isinstance(node, ast.Global | ast.Nonlocal) and name in node.names)
    ]
    if len(assigned) != 1 or len(uses) != 1 + times_read:
        return None
    return _text(assigned[0])
