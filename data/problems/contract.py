"""KernelBench's file contract, checked by reading: nothing of the file is run.

A tripwire for a clear message before anything starts. What only running can tell (an import that
fails, outputs that are no tensors) is found by the evaluator's reference process.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from kopt.problem import (
    INIT_INPUTS_FUNCTION,
    INPUT_CASES_FUNCTION,
    INPUTS_FUNCTION,
    REFERENCE_CLASS,
)

EXPECTED = (
    "a model with get_inputs(), or a Triton, Helion, CUDA or load_inline kernel with its launch, "
    "its reference and get_inputs()"
)
"""What a file may be (kopt.data.problems.normal), for errors."""
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
    none. `get_input_cases()`, where there is one, gives a list of further arguments of forward.
    Only what is plain from the text is reported: a list built by a loop is not counted, and a
    `Model` that is imported or assigned is taken as given.
    """
    module = _parsed(source)
    if isinstance(module, str):
        return [module]
    errors = _undefined(module)
    if len(errors) > 1:
        return [
            f"it defines no class {REFERENCE_CLASS} and no {INPUTS_FUNCTION}(): expected {EXPECTED}"
        ]
    functions = _functions(module)
    errors += [
        f"{name}() must take no argument, and it takes {taken}"
        for name in (INPUTS_FUNCTION, INIT_INPUTS_FUNCTION, INPUT_CASES_FUNCTION)
        if name in functions and (taken := arity(functions[name].args, bound=0)).least > 0
    ]
    model = next(
        (n for n in module.body if isinstance(n, ast.ClassDef) and n.name == REFERENCE_CLASS), None
    )
    if model is not None:
        errors += _model_errors(model, functions)
    return errors


def undefined(source: str) -> str | None:
    """Return what keeps a text from being a problem's at all, or None.

    It does not parse, or it does not define the names that every problem does; whether they are
    right is for `contract_errors`.
    """
    module = _parsed(source)
    if isinstance(module, str):
        return module
    return next(iter(_undefined(module)), None)


def input_cases(source: str) -> int | None:
    """Return how many argument lists a candidate is judged on, `get_inputs()` counted.

    1 without get_input_cases(); None where its list is not spelt out, or the text does not parse.
    """
    module = _parsed(source)
    if isinstance(module, str):
        return None
    if INPUT_CASES_FUNCTION not in _bound_names(module.body):
        return 1
    cases = _literal_returns(_functions(module).get(INPUT_CASES_FUNCTION))
    lengths = {len(case) for case in cases or ()}
    return 1 + lengths.pop() if len(lengths) == 1 else None


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
    for maker, method in ((INPUTS_FUNCTION, "forward"), (INIT_INPUTS_FUNCTION, "__init__")):
        if method not in methods:
            continue
        taken = arity(methods[method].args, bound=1)
        given = literal_length(functions[maker]) if maker in functions else None
        if maker == INIT_INPUTS_FUNCTION and maker not in functions:
            given = 0
        if given is not None and not taken.accepts(given):
            errors.append(f"{maker}() gives {given} argument(s), Model.{method} takes {taken}")
    if INPUT_CASES_FUNCTION in functions:
        forward = arity(methods["forward"].args, bound=1) if "forward" in methods else None
        errors += _case_errors(functions[INPUT_CASES_FUNCTION], forward)
    return errors


def _case_errors(function: ast.FunctionDef, forward: Arity | None) -> list[str]:
    """What is wrong with a list of cases that is spelt out."""
    returns = _literal_returns(function) or []
    errors = [f"{INPUT_CASES_FUNCTION}() gives no case" for cases in returns if not cases]
    for number, case in ((n, case) for cases in returns for n, case in enumerate(cases)):
        what = f"{INPUT_CASES_FUNCTION}()[{number}]"
        if isinstance(case, ast.Constant):
            errors.append(f"{what} must be a list of forward's arguments, got {case.value!r}")
        spelt = _spelt_out(case)
        if spelt is not None and forward is not None and not forward.accepts(len(spelt)):
            errors.append(f"{what} gives {len(spelt)} argument(s), Model.forward takes {forward}")
    return errors


def _parsed(source: str) -> ast.Module | str:
    """The module, or in a line why the text is none."""
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "it is nested too deeply to be read"


def _undefined(module: ast.Module) -> list[str]:
    bound = _bound_names(module.body)
    names = ((REFERENCE_CLASS, "class Model"), (INPUTS_FUNCTION, "get_inputs()"))
    return [f"it defines no {what}" for name, what in names if name not in bound]


def _functions(module: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}


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


def arity(arguments: ast.arguments, *, bound: int) -> Arity:
    """Return how many arguments a signature takes, `bound` of them (such as self) left out."""
    positional = len(arguments.posonlyargs) + len(arguments.args) - bound
    least = max(0, positional - len(arguments.defaults))
    return Arity(least, None if arguments.vararg else positional)


def literal_length(function: ast.FunctionDef) -> int | None:
    """Return the length of the list that every return of a function spells out, or None."""
    lengths = {len(items) for items in _literal_returns(function) or ()}
    return lengths.pop() if len(lengths) == 1 else None


def _literal_returns(function: ast.FunctionDef | None) -> list[list[ast.expr]] | None:
    """The lists that the returns of a function spell out; None where one does not."""
    if function is None:
        return None
    found = []
    for node in _own_nodes(function):
        if isinstance(node, ast.Return):
            spelt = _spelt_out(node.value)
            if spelt is None:
                return None
            found.append(spelt)
    return found


def _spelt_out(value: ast.expr | None) -> list[ast.expr] | None:
    """The items of a list or tuple that the text spells out whole."""
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    return None if any(isinstance(item, ast.Starred) for item in value.elts) else value.elts


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
