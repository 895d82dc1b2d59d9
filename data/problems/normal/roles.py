"""Who is who in a kernel's file: the reference, what launches the kernels, what makes inputs.

Names that everybody uses are believed first; then structure: what reaches a kernel launches it,
what reaches none and takes the inputs is the reference.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.data.problems.contract import Arity, arity, literal_length
from kopt.data.problems.normal.parts import Parts
from kopt.problem import (
    CANDIDATE_CLASS,
    INIT_INPUTS_FUNCTION,
    INPUT_CASES_FUNCTION,
    INPUTS_FUNCTION,
    REFERENCE_CLASS,
)

MAKERS = (INPUTS_FUNCTION, INIT_INPUTS_FUNCTION, INPUT_CASES_FUNCTION)
"""Functions of the contract, which are neither a reference nor a launch."""
_REFERENCE = re.compile(
    r"(^|_)(ref|reference|torch|pytorch|naive|eager|golden|expected|oracle|baseline)(_|$|impl)",
    re.IGNORECASE,
)
_LAUNCH = re.compile(
    r"(^|_)(run|launch|launcher|kernel|forward|fwd|solve|solution|call|triton|helion|cuda|host)(_|$)",
    re.IGNORECASE,
)
_TRIAL = re.compile(r"^_?(test|bench|benchmark|check|verify|main|profile|time)(_|$)", re.IGNORECASE)
"""Functions that try a kernel out."""


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of a module's definitions by what they are for; empty where there is none."""

    reference: str
    launch: str
    why_none: str = ""
    """Why there is no reference or no launch, in a line, where it matters."""


def launchers(parts: Parts) -> set[str]:
    """Return the functions and classes that reach a kernel, kernels left out."""
    targets = parts.kernels | parts.libraries
    defined = [*parts.functions, *parts.classes]
    return {
        name
        for name in defined
        if name not in parts.kernels and not targets.isdisjoint(parts.needs(name))
    }


def roles_of(parts: Parts) -> Roles:
    """Return who is who, of a file that holds kernels or defines ModelNew.

    The reference is `Model`, another nn.Module that reaches no kernel, or a function that reaches
    none; the launch is `ModelNew`, or the outermost of what reaches one.
    """
    reaching = launchers(parts)
    num_inputs = _num_inputs(parts)
    tried = {name for name in parts.functions if _TRIAL.search(name)}
    if CANDIDATE_CLASS in parts.classes or parts.binds(CANDIDATE_CLASS):
        launch, unclear = CANDIDATE_CLASS, ""
    else:
        launch, unclear = _launch(parts, reaching - tried, num_inputs)
    helpers = parts.needs(launch) if launch else set()
    if REFERENCE_CLASS in parts.classes or parts.binds(REFERENCE_CLASS):
        return Roles(REFERENCE_CLASS, launch, unclear)
    modules = outermost(
        parts, [name for name in parts.modules if name not in reaching | {CANDIDATE_CLASS}]
    )
    if len(modules) == 1:
        return Roles(modules[0], launch, unclear)
    plain = [
        name for name in parts.functions if name not in {*reaching, *parts.kernels, *tried, *MAKERS}
    ]
    named = [name for name in plain if _REFERENCE.search(name) and _fits(parts, name, num_inputs)]
    alone = [name for name in plain if name not in helpers and _fits(parts, name, num_inputs)]
    for chosen in (outermost(parts, named), outermost(parts, alone)):
        if len(chosen) == 1:
            return Roles(chosen[0], launch, unclear)
    found = ", ".join(plain) or "no function beside the kernel's"
    return Roles(
        "",
        launch,
        f"no reference: expected class Model or a function reference(…) "
        f"of the inputs in torch operations; found {found}",
    )


def _launch(parts: Parts, reaching: set[str], num_inputs: int | None) -> tuple[str, str]:
    """What launches the kernels, or why it cannot be told."""
    found = [name for name in (*parts.classes, *parts.functions) if name in reaching]
    found += [
        name
        for name in parts.functions
        if name in parts.kernels and parts.is_decorated(name, by="helion")
    ]
    found = [name for name in found if name not in MAKERS and name != REFERENCE_CLASS]
    fitting = [name for name in found if name in parts.modules or _fits(parts, name, num_inputs)]
    outer = outermost(parts, [name for name in fitting if name in parts.modules]) or outermost(
        parts, [name for name in fitting if name in parts.functions]
    )
    if len(outer) > 1:
        outer = [name for name in outer if _LAUNCH.search(name)] or outer
    if len(outer) == 1:
        return outer[0], ""
    if not outer:
        many = "" if num_inputs is None else f" of {num_inputs} argument(s), as get_inputs() gives,"
        return "", (
            f"no launch: expected a function{many} that runs the kernel and returns what it "
            f"computes, or class ModelNew; found {', '.join(found) or 'none'}"
        )
    return "", f"several launches: {', '.join(outer)}; name the one that counts run(…)"


def outermost(parts: Parts, names: Sequence[str]) -> list[str]:
    """Return those names that none of the others needs, in order."""
    return [
        name
        for name in names
        if not any(name in parts.needs(other) for other in names if other != name)
    ]


def _fits(parts: Parts, name: str, num_inputs: int | None) -> bool:
    """Whether a function can be called with the inputs, as far as the text says."""
    node = parts.functions.get(name)
    return node is not None and (num_inputs is None or _arity(node).accepts(num_inputs))


def _arity(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Arity:
    return arity(node.args, bound=0)


def _num_inputs(parts: Parts) -> int | None:
    """How many inputs there are, where the text says so."""
    node = parts.functions.get(INPUTS_FUNCTION)
    return literal_length(node) if isinstance(node, ast.FunctionDef) else None
