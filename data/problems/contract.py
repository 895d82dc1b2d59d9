"""KernelBench's file contract, checked by reading: nothing of the file is run.

A tripwire for a clear message before anything starts. What only running can tell (an import that
fails, outputs that are no tensors) is found by the evaluator's reference process.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from kopt.problem import REFERENCE_CLASS

MODULE_NAMES = ("Module", "nn.Module", "torch.nn.Module")


class Arity(NamedTuple):
    """How many positional arguments a function takes, `self` left out."""

    least: int
    most: int | None
    """None where it takes any number (`*args`)."""

    def accepts(self, count: int) -> bool:
        """Return whether a call with that many positional arguments fits."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def contract_errors(source: str) -> list[str]:
    """Return what breaks the contract, one line each; empty where nothing is seen to.

    The contract: `Model` with `forward`, `get_inputs()` giving the arguments of forward, and
    `get_init_inputs()` giving those of the constructor; without the last, the constructor takes
    none. Only what is plain from the text is reported: a list built by a loop is not counted, and
    a `Model` that is imported or assigned is taken as given.
    """
    try:
        module = ast.parse(source)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    except ValueError as error:
        return [str(error)]
    bound = _bound_names(module.body)
    errors = [
        f"it defines no {what}"
        for name, what in ((REFERENCE_CLASS, "class Model"), ("get_inputs", "get_inputs()"))
        if name not in bound
    ]
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    errors += [
        f"{name}() must take no argument, and it takes {arity}"
        for name in ("get_inputs", "get_init_inputs")
        if name in functions and (arity := _arity(functions[name].args, bound=0)).least > 0
    ]
    model = next(
        (n for n in module.body if isinstance(n, ast.ClassDef) and n.name == REFERENCE_CLASS), None
    )
    if model is not None:
        errors += _model_errors(model, functions)
    return errors


def module_constant(source: str, name: str) -> str | None:
    """Return the text that the file assigns to a name at its top level, or None."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return None
    for node in body:
        if (
            isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return node.value.value
    return None


def _model_errors(model: ast.ClassDef, functions: dict[str, ast.FunctionDef]) -> list[str]:
    methods = {node.name: node for node in model.body if isinstance(node, ast.FunctionDef)}
    plain = all(ast.unparse(base) in MODULE_NAMES for base in model.bases)
    errors = []
    if not model.bases:
        errors.append("class Model must derive from torch.nn.Module")
    elif plain and "forward" not in _bound_names(model.body):
        errors.append("class Model has no forward")
    for maker, method in (("get_inputs", "forward"), ("get_init_inputs", "__init__")):
        if method not in methods:
            continue
        taken = _arity(methods[method].args, bound=1)
        given = _literal_length(functions[maker]) if maker in functions else None
        if maker == "get_init_inputs" and maker not in functions:
            given = 0
        if given is not None and not taken.accepts(given):
            errors.append(f"{maker}() gives {given} argument(s), Model.{method} takes {taken}")
    return errors


def _bound_names(body: list[ast.stmt]) -> set[str]:
    """Names that statements bind in their own scope, whatever branch binds them."""
    names: set[str] = set()
    for node in body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name.split(".")[0] for alias in aliases}
            case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
                for field in ("body", "orelse", "finalbody"):
                    names |= _bound_names(getattr(node, field, []))
                for handler in getattr(node, "handlers", []):
                    names |= _bound_names(handler.body)
            case ast.Assign() | ast.AnnAssign():
                names |= {
                    leaf.id
                    for leaf in ast.walk(node)
                    if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store)
                }
            case _:
                pass
    return names


def _arity(arguments: ast.arguments, *, bound: int) -> Arity:
    positional = len(arguments.posonlyargs) + len(arguments.args) - bound
    least = max(0, positional - len(arguments.defaults))
    return Arity(least, None if arguments.vararg else positional)


def _literal_length(function: ast.FunctionDef) -> int | None:
    """Length of the list that every return of a function spells out, or None."""
    lengths: set[int] = set()
    for node in _own_nodes(function):
        if isinstance(node, ast.Return):
            spelt = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else None
            if spelt is None or any(isinstance(item, ast.Starred) for item in spelt):
                return None
            lengths.add(len(spelt))
    return lengths.pop() if len(lengths) == 1 else None


def _own_nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """Nodes of a function, without those of functions defined within it."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))
    return found
