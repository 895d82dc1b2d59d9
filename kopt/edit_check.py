"""The executor's rules: what is wrong with a program before it is judged, by its text alone.

Source: KernelOPT App. A.2 (its "critical rules" and the masks under autotuning). A program that
breaks one goes back to its author in the same conversation; each fault names its line and what to
do. Gate 1 (static_check) is asked first. Nothing here decides about a program: what keeps a fault
is judged like any other, and its verdict counts.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Collection, Iterator, Mapping

from kopt.candidate import LANGUAGES, Language
from kopt.problem import CANDIDATE_CLASS, REFERENCE_CLASS
from kopt.static_check import static_check
from kopt.static_names import Names
from kopt.triton_rules import autotune_faults, jit_functions, unknown_calls

MAX_FAULTS = 8
"""Told at once."""
_IMPLICIT = frozenset({"__name__", "__file__", "__doc__", "__builtins__", "__class__"})


def edit_faults(
    source: str,
    *,
    language: Language,
    reference: str,
    version: str | None = None,
    allowed: Collection[Language] = LANGUAGES,
    functions: Collection[str] = (),
) -> tuple[str, ...]:
    """Return what is wrong with a program, a line each; nothing where all rules are kept.

    Args:
        source: of the program.
        language: that it is written in.
        reference: the problem's source, whose `Model` gives the arguments.
        version: the program that was to be changed: its Triton kernels keep their parameters; None
            where it was written from the reference.
        allowed: languages that can be built.
        functions: what Triton's language offers, as programs write it (`tl.load`); empty: unknown.
    """
    report = static_check(source, language=language, allowed=allowed)
    if not report.passed:
        refused = [f"{check.name}: {check.detail}" for check in report.tripwires]
        return (*report.errors, *refused)[:MAX_FAULTS]
    tree = ast.parse(source)  # gate 1 has parsed it
    names = Names(tree)
    faults = [
        *_undefined(source),
        *_other_arguments(tree, reference=reference),
        *_other_parameters(tree, names, version=version),
        *autotune_faults(tree, names),
        *unknown_calls(tree, names, functions=functions),
    ]
    return tuple(dict.fromkeys(faults))[:MAX_FAULTS]


def _undefined(source: str) -> Iterator[str]:
    """Names that functions read and nobody defines."""
    table = symtable.symtable(source, "candidate", "exec")
    if "import *" in source:
        return  # what it brings is not in the text
    known = {symbol.get_name() for symbol in table.get_symbols() if _is_bound(symbol)}
    known |= _set_as_globals(table) | set(dir(builtins)) | _IMPLICIT
    for scope in _scopes(table):
        for symbol in scope.get_symbols():
            name = symbol.get_name()
            is_read = symbol.is_referenced() and symbol.is_global()
            if is_read and name not in known:
                yield (
                    f"line {scope.get_lineno()}: `{scope.get_name()}` reads `{name}`, which "
                    "nothing defines; pass it, compute it, or define it at module level"
                )


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    for child in table.get_children():
        yield child
        yield from _scopes(child)


def _set_as_globals(table: symtable.SymbolTable) -> set[str]:
    """Names that functions make at module level by `global`."""
    return {
        symbol.get_name()
        for scope in _scopes(table)
        for symbol in scope.get_symbols()
        if symbol.is_declared_global() and symbol.is_assigned()
    }


def _other_arguments(tree: ast.Module, *, reference: str) -> Iterator[str]:
    """`forward` and `__init__` that cannot be called as the reference's are."""
    try:
        model = _methods(ast.parse(reference), REFERENCE_CLASS)
    except (SyntaxError, ValueError, RecursionError):
        return  # its own fault, found elsewhere
    new = _methods(tree, CANDIDATE_CLASS)
    for name in ("__init__", "forward"):
        if name not in model or name not in new:
            continue
        wanted, found = _positional(model[name]), _positional(new[name])
        needed = len(wanted) - len(model[name].args.defaults)
        least = len(found) - len(new[name].args.defaults)
        takes_all = new[name].args.vararg is not None
        if least > len(wanted) or (needed > len(found) and not takes_all):
            yield (
                f"line {new[name].lineno}: `{CANDIDATE_CLASS}.{name}` takes ({', '.join(found)}); "
                f"it is called as the reference's, which takes ({', '.join(wanted)})"
            )


def _methods(tree: ast.Module, name: str) -> Mapping[str, ast.FunctionDef]:
    return {
        entry.name: entry
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == name
        for entry in node.body
        if isinstance(entry, ast.FunctionDef)
    }


def _positional(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)][1:]


def _other_parameters(tree: ast.Module, names: Names, *, version: str | None) -> Iterator[str]:
    """Kernels of the version under other parameters (rule 1)."""
    if version is None:
        return
    try:
        before_tree = ast.parse(version)
    except (SyntaxError, ValueError, RecursionError):
        return
    before = {each.name: each for each in jit_functions(before_tree, Names(before_tree))}
    for kernel in jit_functions(tree, names):
        known = before.get(kernel.name)
        if known is None:
            continue
        was, now = _parameters(known), _parameters(kernel)
        if was != now:
            yield (
                f"line {kernel.lineno}: kernel `{kernel.name}` took ({', '.join(was)}) and takes "
                f"({', '.join(now)}); keep the parameters, or give another kernel another name"
            )


def _parameters(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
