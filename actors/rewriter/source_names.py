"""Names in the reference's source: what binds them, who reads them, and so what is kept."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from kopt.problem import INIT_INPUTS_FUNCTION, INPUT_CASES_FUNCTION, INPUTS_FUNCTION

LEFT_OUT = frozenset({INPUTS_FUNCTION, INIT_INPUTS_FUNCTION, INPUT_CASES_FUNCTION})


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is nothing but a constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def reachable_members(members: list[ast.stmt], *, also: Sequence[str]) -> list[ast.stmt]:
    """Drop methods that neither construction nor `also` calls by name."""
    methods = {n.name: n for n in members if isinstance(n, ast.FunctionDef)}
    reached = {name for name in methods if name.startswith("__") or name in also}
    reached |= {n.name for n in methods.values() if n.decorator_list}
    waiting: list[ast.stmt] = [n for n in members if getattr(n, "name", None) not in methods]
    waiting += [methods[name] for name in reached]
    while waiting:
        for leaf in ast.walk(waiting.pop()):
            name = leaf.attr if isinstance(leaf, ast.Attribute) else getattr(leaf, "id", None)
            if name in methods and name not in reached:
                reached.add(name)
                waiting.append(methods[name])
    dropped = methods.keys() - reached
    return [n for n in members if getattr(n, "name", None) not in dropped]


def needed_names(tree: ast.Module, roots: Sequence[ast.AST]) -> set[str]:
    """Return the names that the roots, and what they use, read at module level."""
    by_name: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in bound_names(node):
            by_name.setdefault(name, []).append(node)
    needed: set[str] = set()
    waiting: list[ast.AST] = list(roots)
    while waiting:
        for name in _global_names(waiting.pop()):
            if name not in needed and name in by_name:
                needed.add(name)
                waiting.extend(by_name[name])
    return needed


def _global_names(node: ast.AST) -> set[str]:
    """Return the names that a piece of code may read from its module."""
    names: set[str] = set()
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        # An annotation in quotes, or globals()["name"].
        names.add(node.value)
    for child in ast.iter_child_nodes(node):
        names |= _global_names(child)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        # Defaults and decorators are evaluated outside, where the names may mean the module's.
        outside: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        outside += getattr(node, "decorator_list", [])
        names -= _local_names(node)
        for part in outside:
            names |= _global_names(part)
    return names


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return {arg.arg for arg in named}


def bound_names(node: ast.stmt) -> set[str]:
    """Return the names that a statement at module level binds."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    names = {
        leaf.id
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store)
    }
    for leaf in ast.walk(node):
        if isinstance(leaf, ast.FunctionDef | ast.ClassDef):
            names.add(leaf.name)
    return names


def is_kept(node: ast.stmt, needed: set[str]) -> bool:
    """Whether a candidate keeps a statement of the module, given the names that it needs."""
    if is_docstring(node) or _is_main_guard(node):
        return False
    bound = bound_names(node)
    if bound & LEFT_OUT:
        return False
    # A statement that binds nothing was written for its effect (a default dtype, a warning filter).
    return not bound or bool(bound & needed)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
