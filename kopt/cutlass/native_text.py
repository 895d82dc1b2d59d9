"""The C++ and CUDA that a candidate's Python is certain to compile, with where each line stands.

Certain means: `load_inline` is called at module level, outside of any `if` and `try`, and its
sources are texts that are written out: literals, names that are bound once to one, lists and sums
of those. Whatever is made at run time is left to the compiler.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_POSITIONS = ("name", "cpp_sources", "cuda_sources")
_FLAGS = ("extra_cflags", "extra_cuda_cflags")


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeText:
    """One text that is compiled."""

    text: str
    first_line: int | None
    """Of the Python text, that its first line stands in; None where lines are not told apart."""

    def place(self, at: int) -> str:
        """Return the line of a place in the text, in words."""
        line = self.text.count("\n", 0, at)
        if self.first_line is None:
            return f"line {line + 1} of the native source"
        return f"line {self.first_line + line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeBuild:
    """One `load_inline`."""

    texts: tuple[NativeText, ...]
    includes: tuple[str, ...]
    """Folders that it names, `-I` of its flags included."""
    knows_all: bool
    """Whether every folder and flag is written out."""


def native_builds(tree: ast.Module) -> Iterator[NativeBuild]:
    """Yield what a module is certain to compile."""
    known = _Known(tree)
    for statement in tree.body:
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr) and isinstance(
            value, ast.Call
        ):
            build = _build(value, known)
            if build is not None:
                yield build


def _build(call: ast.Call, known: _Known) -> NativeBuild | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name != "load_inline" or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = dict(zip(_POSITIONS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    texts: list[NativeText] = []
    for role in ("cpp_sources", "cuda_sources"):
        for each in known.items(given.get(role)) or ():
            made = known.native(each)
            if made is not None:
                texts.append(made)
    folders = known.texts(given.get("extra_include_paths"))
    flags = [known.texts(given.get(each)) for each in _FLAGS]
    written = [folder for folder in folders or () if folder is not None]
    written += [
        flag.removeprefix("-I").strip()
        for group in flags
        for flag in group or ()
        if flag is not None and flag.startswith("-I")
    ]
    groups = [folders, *flags]
    starred = any(keyword.arg is None for keyword in call.keywords)
    knows_all = not starred and all(
        group is not None and None not in group and not any(_is_bare(flag) for flag in group)
        for group in groups
    )
    return NativeBuild(texts=tuple(texts), includes=tuple(written), knows_all=knows_all)


def _is_bare(flag: str | None) -> bool:
    """Whether a flag says that the next one is a folder, or names headers in another way."""
    return flag in ("-I", "-isystem", "-include", "-idirafter") or str(flag).startswith(
        ("-isystem", "-include", "-idirafter", "-D", "@")
    )


class _Known:
    """Names of a module that stand for one written value."""

    def __init__(self, tree: ast.Module) -> None:
        bound: Counter[str] = Counter()
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bound[node.id] += 1
            elif isinstance(node, ast.arg):
                bound[node.arg] += 1
            elif isinstance(node, ast.alias):
                bound[node.asname or node.name] += 1
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound[node.name] += 1
        self._values: dict[str, ast.expr] = {}
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name) and bound[target.id] == 1:
                    self._values[target.id] = statement.value
        changed = {
            node.value.id
            for node in ast.walk(tree)  # `flags.append(…)`, `flags[0] = …`
            if isinstance(node, ast.Attribute | ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(self._values.get(node.value.id), ast.List)
        }
        for name in changed:
            del self._values[name]

    def items(self, node: ast.expr | None) -> Sequence[ast.expr] | None:
        """Return the elements of a list, or a single text as one; None where it is neither."""
        node = self._behind(node)
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return ()
        if isinstance(node, ast.List | ast.Tuple):
            return None if any(isinstance(each, ast.Starred) for each in node.elts) else node.elts
        return (node,)

    def texts(self, node: ast.expr | None) -> list[str | None] | None:
        """Return the texts of a list; None for one that is not written out."""
        found = self.items(node)
        return None if found is None else [self.text(each) for each in found]

    def native(self, node: ast.expr) -> NativeText | None:
        """Return a source; None where it is not written out."""
        text = self.text(node)
        if text is None:
            return None
        written = self._behind(node)
        first = None
        if isinstance(written, ast.Constant) and written.end_lineno is not None:
            # Not so where lines are joined by a backslash or broken by an escape.
            spans = written.end_lineno - written.lineno
            first = written.lineno if spans == text.count("\n") else None
        return NativeText(text=text, first_line=first)

    def text(self, node: ast.expr | None, *, depth: int = 0) -> str | None:
        """Return what an expression of texts stands for; None where it is not written out."""
        node = self._behind(node)
        if depth > 20:
            return None
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return _joined([self.text(each, depth=depth + 1) for each in (left, right)])
            case ast.JoinedStr(values=values):
                return _joined([self._piece(each, depth=depth + 1) for each in values])
            case ast.Call(func=ast.Attribute(attr="join"), args=[_, *_] as args, keywords=[]):
                parts = [self.text(each, depth=depth + 1) for each in args]
                is_path = ast.unparse(node.func) in ("os.path.join", "path.join")
                return "/".join(filter(None, parts)) if is_path and None not in parts else None
        return None

    def _piece(self, node: ast.expr, *, depth: int) -> str | None:
        if not isinstance(node, ast.FormattedValue):
            return self.text(node, depth=depth)
        if node.format_spec is not None or node.conversion != -1:
            return None
        value = self._behind(node.value)
        if isinstance(value, ast.Constant) and type(value.value) is int:
            return str(value.value)
        return self.text(value, depth=depth)

    def _behind(self, node: ast.expr | None) -> ast.expr | None:
        for _ in range(20):
            if not isinstance(node, ast.Name) or node.id not in self._values:
                return node
            node = self._values[node.id]
        return None


def _joined(parts: Sequence[str | None]) -> str | None:
    return None if None in parts else "".join(part for part in parts if part is not None)
