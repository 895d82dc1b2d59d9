"""A `.cu` or `.cpp` file in normal form: its text in load_inline, beside a Python file's reference.

The binding says which function is called: `m.def(…)` of a PYBIND11_MODULE, or without one a host
function that takes and returns tensors, which load_inline then binds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from kopt.data.problems.contract import arity, literal_length
from kopt.data.problems.normal.form import NormalForm
from kopt.data.problems.normal.wrapper import wrapped
from kopt.errors import ConfigError
from kopt.problem import CANDIDATE_CLASS, INPUTS_FUNCTION, REFERENCE_CLASS
from kopt.prompts.parsing import parsed

SOURCE_SUFFIXES = (".cu", ".cpp", ".cc")
"""Of files that hold a kernel with its binding, and have their reference beside them."""
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_PYBIND = re.compile(r"\bPYBIND11_MODULE\s{0,8}\(")
_BOUND = re.compile(r"\bm\s{0,8}\.\s{0,8}def\s{0,8}\(\s{0,80}\"(\w{1,80})\"")
_TENSORS = (
    r"(?:std\s{0,4}::\s{0,4}(?:vector|tuple|pair)\s{0,4}<[^;{}()]{0,200}>|(?:torch|at)::Tensor)"
)
_HOST = re.compile(
    rf"^[ \t]*(?P<result>{_TENSORS})\s{{1,80}}(?P<name>\w{{1,80}})\s{{0,8}}"
    r"\((?P<parameters>[^;{}]{0,2000})\)\s{0,80}\{",
    re.MULTILINE,
)
_FIRST_CHOICE = ("forward", "run", "launch", "solve", "main")
_TEMPLATE = """\
import torch
from torch.utils.cpp_extension import load_inline

{language}_SOURCE = {text}

library = load_inline(
    name="given_kernel",
    cpp_sources={cpp},
    cuda_sources={cuda},
    functions={functions},
)
"""


def normal_form_of_cuda(text: str, *, suffix: str, stem: str, reference: str) -> NormalForm:
    """Return a kernel's file in normal form.

    Args:
        text: of the `.cu` or `.cpp` file.
        suffix: of its name, one of SOURCE_SUFFIXES.
        stem: of its name: what its function may be called.
        reference: text of the Python file, in KernelBench's contract already.

    Raises:
        ConfigError: no function of it is bound or can be, several are, or the reference has a
            constructor; one line.
    """
    arguments, num_inputs = _forward(reference)
    bare = _COMMENT.sub(" ", text)
    has_binding = bool(_PYBIND.search(bare))
    name, declaration = (
        (_choose(dict.fromkeys(_BOUND.findall(bare), ""), stem=stem), "")
        if has_binding
        else _host_function(bare, stem=stem, num_inputs=num_inputs)
    )
    is_cuda = suffix == ".cu"
    functions = None if has_binding else [name]
    head = _TEMPLATE.format(
        language="CUDA" if is_cuda else "CPP",
        text=_literal(text),
        cpp=repr(declaration) if is_cuda else "CPP_SOURCE",
        cuda="CUDA_SOURCE" if is_cuda else "None",
        functions=repr(functions),
    )
    tail = wrapped(
        CANDIDATE_CLASS,
        arguments=arguments,
        calls=f"library.{name}",
        what=f"The kernel of {stem}{suffix}.",
    )
    return NormalForm(reference, head + tail)


def _forward(reference: str) -> tuple[ast.arguments, int | None]:
    """The arguments of the reference's forward, self left out, and how many inputs there are.

    Raises:
        ConfigError: the reference has a constructor, which a function of C++ cannot share.
    """
    tree = parsed(reference)
    classes = [] if tree is None else [n for n in tree.body if isinstance(n, ast.ClassDef)]
    members = {
        member.name: member
        for node in classes
        if node.name == REFERENCE_CLASS
        for member in node.body
        if isinstance(member, ast.FunctionDef)
    }
    if "__init__" in members:
        raise ConfigError(
            f"its reference has a constructor, so that the kernel must come as class "
            f"{CANDIDATE_CLASS} with the same one, in a Python file with load_inline"
        )
    if "forward" not in members or tree is None:
        raise ConfigError(f"its reference's class {REFERENCE_CLASS} has no forward of its own")
    arguments = members["forward"].args
    own = [*arguments.posonlyargs, *arguments.args][1:]
    maker = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == INPUTS_FUNCTION), None
    )
    made = None if maker is None else literal_length(maker)
    bare = ast.arguments(
        posonlyargs=[],
        args=own,
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        defaults=arguments.defaults,
    )
    return bare, made if made is not None else arity(bare, bound=0).most


def _host_function(text: str, *, stem: str, num_inputs: int | None) -> tuple[str, str]:
    """The function that is to be bound, and its declaration.

    Raises:
        ConfigError: there is none, or several.
    """
    found = {
        match["name"]: f"{' '.join(match['result'].split())} {match['name']}"
        f"({' '.join(match['parameters'].split())});"
        for match in _HOST.finditer(text)
        if num_inputs is None or _count(match["parameters"]) == num_inputs
    }
    name = _choose(found, stem=stem)
    return name, found[name]


def _choose(found: dict[str, str], *, stem: str) -> str:
    """The function that counts: the only one, or the one with a name that says so.

    Raises:
        ConfigError: there is none, or several.
    """
    if not found:
        raise ConfigError(
            "it binds nothing: expected a PYBIND11_MODULE, or a host function of the inputs that "
            "returns torch::Tensor"
        )
    if len(found) == 1:
        return next(iter(found))
    for name in (stem, *_FIRST_CHOICE):
        if name in found:
            return name
    raise ConfigError(
        f"it binds several functions: {', '.join(found)}; name the one that counts {stem}"
    )


def _count(parameters: str) -> int:
    """How many parameters a C++ function has; what has a default is not counted apart."""
    depth, count = 0, int(bool(parameters.strip()))
    for character in parameters:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(character, 0)
        count += int(character == "," and depth == 0)
    return count


def _literal(text: str) -> str:
    """A Python literal of the text that reads as the text does, where it can."""
    if "'''" in text or text.endswith(("'", "\\")) or "\r" in text:
        return repr(text)
    return f"r'''\n{text}'''"


def beside(stem: str) -> Sequence[str]:
    """Return the names of Python files that may hold a kernel file's reference, best first."""
    return (f"{stem}.py", f"{stem}_reference.py", f"{stem}_ref.py", "reference.py")
