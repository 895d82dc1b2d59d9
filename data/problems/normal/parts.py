"""A module as the statements it is made of: who binds a name, who reads it, what a name needs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from kopt.static_kernels import KERNEL_DECORATORS
from kopt.static_names import Names

Function = ast.FunctionDef | ast.AsyncFunctionDef

_LOAD = "torch.utils.cpp_extension.load"
_LOADERS = (
    _LOAD,
    "torch.utils.cpp_extension.load_inline",
    "cutlass.cute.compile",
    "cupy.RawKernel",
    "cupy.RawModule",
)
"""Calls that give a library of kernels, or one that is compiled."""
_MODULE_PATHS = ("torch.nn.Module", "torch.nn.modules.module.Module", "nn.Module", "Module")


class Parts:
    """A module's statements by the names that they bind. Nothing of it is run."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        """Read a module.

        Args:
            source: its text.
            tree: of it.
        """
        self.source = source
        self.tree = tree
        self._lines = source.splitlines(keepends=True)
        self._names = Names(tree)
        self._body = [node for node in tree.body if not _is_main_guard(node)]
        self._reads = {id(node): read_names(node) for node in self._body}
        self._binders: dict[str, list[ast.stmt]] = {}
        for node in self._body:
            for name in bound_names(node):
                self._binders.setdefault(name, []).append(node)
        self.functions = {n.name: n for n in self._body if isinstance(n, Function)}
        self.classes = {n.name: n for n in self._body if isinstance(n, ast.ClassDef)}
        self.modules = [name for name, node in self.classes.items() if self._is_module(node)]
        """Classes that are nn.Modules, in order."""
        self.kernels = {name for name, node in self.functions.items() if self._is_kernel(node)}
        self.libraries = {
            name
            for node in self._body
            if isinstance(node, ast.Assign | ast.AnnAssign) and self._loads_library(node.value)
            for name in bound_names(node)
        }
        """Names of extensions and compiled kernels."""

    def binds(self, name: str) -> bool:
        """Return whether a statement of the module binds a name, an import included."""
        return name in self._binders

    def needs(self, *names: str) -> set[str]:
        """Return the names that some of the module's need, they themselves included."""
        needed: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in needed or name not in self._binders:
                continue
            needed.add(name)
            for node in self._binders[name]:
                waiting.extend(self._reads[id(node)])
        return needed

    def loaded_files(self) -> list[str]:
        """Return the files that the module compiles from beside it, as it names them."""
        calls = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and self._path_of(node) == _LOAD
        ]
        return [
            part.value
            for call in calls
            for part in ast.walk(call)
            if isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and part.value.endswith((".cu", ".cpp", ".cc"))
        ]

    def is_decorated(self, name: str, *, by: str) -> bool:
        """Return whether a function has a decorator of a package, such as `helion`."""
        return any(
            self._path_of(entry).split(".")[0] == by
            for entry in self.functions[name].decorator_list
        )

    def text(self, needed: Collection[str], *, without: Iterable[ast.stmt] = ()) -> str:
        """Return the text of the statements that bind these names, or act on one of them.

        Comments above a statement stay with it; what acts on none of them is left out.
        """
        left_out = {id(node) for node in without}
        kept = [
            self._text_of(node, needed)
            for node in self._body
            if id(node) not in left_out and self._is_kept(node, needed)
        ]
        return "".join(kept)

    def _is_kept(self, node: ast.stmt, needed: Collection[str]) -> bool:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return True
        bound = bound_names(node)
        if bound:
            return not bound.isdisjoint(needed)
        # `CONFIGS.append(…)`: what changes something of the module's own belongs to it.
        return isinstance(node, ast.Expr) and self._root(node.value) in needed

    def _root(self, node: ast.expr) -> str:
        """What a call as a statement acts on; empty for what was imported."""
        while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name):
            return ""
        binders = self._binders.get(node.id, [])
        imported = any(isinstance(each, ast.Import | ast.ImportFrom) for each in binders)
        return "" if imported else node.id

    def _text_of(self, node: ast.stmt, needed: Collection[str]) -> str:
        if isinstance(node, ast.Import | ast.ImportFrom) and len(node.names) > 1:
            kept = [name for name in node.names if _bound_by(name) in needed]
            if 0 < len(kept) < len(node.names):  # a reference needs no package of its kernel's
                return ast.unparse(_with_names(node, kept)) + "\n"
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]) - 1
        while first and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        while first and not self._lines[first - 1].strip():
            first -= 1  # the empty lines that set it apart
        text = "".join(self._lines[first : node.end_lineno])
        return text if text.endswith("\n") else f"{text}\n"

    def _is_module(self, node: ast.ClassDef) -> bool:
        waiting, seen = [node], {node.name}
        while waiting:
            for base in waiting.pop().bases:
                if self._names.path(base) in _MODULE_PATHS:
                    return True
                if isinstance(base, ast.Name) and base.id in self.classes and base.id not in seen:
                    seen.add(base.id)
                    waiting.append(self.classes[base.id])
        return False

    def _is_kernel(self, node: Function) -> bool:
        return any(self._path_of(entry) in KERNEL_DECORATORS for entry in node.decorator_list)

    def _path_of(self, node: ast.expr) -> str:
        return self._names.path(node.func if isinstance(node, ast.Call) else node) or ""

    def _loads_library(self, value: ast.expr | None) -> bool:
        return isinstance(value, ast.Call) and self._path_of(value) in _LOADERS


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement at module level binds, whatever branch binds them."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    names: set[str] = set()
    for leaf in ast.walk(node):
        match leaf:
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {_bound_by(alias) for alias in aliases}
    return names


def _with_names(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import(names=names)
    return ast.ImportFrom(module=node.module, names=names, level=node.level)


def _bound_by(alias: ast.alias) -> str:
    return alias.asname or alias.name.split(".")[0]


def read_names(node: ast.AST) -> set[str]:
    """Return the names that code may read from its module; parameters are not among them."""
    names: set[str] = set()
    match node:
        case ast.Name(id=name):
            names.add(name)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            inner = node.body if isinstance(node.body, list) else [node.body]
            names |= _read_by(inner) - parameter_names(node.args)
            outside = [*node.args.defaults, *node.args.kw_defaults]
            outside += getattr(node, "decorator_list", [])
            outside += [argument.annotation for argument in _parameters(node.args)]
            outside.append(getattr(node, "returns", None))
            return names | _read_by(each for each in outside if each is not None)
    return names | _read_by(ast.iter_child_nodes(node))


def _read_by(nodes: Iterable[ast.AST]) -> set[str]:
    return {name for node in nodes for name in read_names(node)}


def parameter_names(arguments: ast.arguments) -> set[str]:
    """Return the names of a function's parameters, variadic ones included."""
    return {argument.arg for argument in _parameters(arguments)}


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [each for each in (arguments.vararg, arguments.kwarg) if each is not None]


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
