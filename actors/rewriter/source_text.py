"""Pieces of the reference's text: a statement as it is written, renamed, or under another name."""

from __future__ import annotations

import ast
import copy
import io
import tokenize
from collections.abc import Sequence

from kopt.actors.rewriter.graph import NotRewritable
from kopt.problem import CANDIDATE_CLASS, REFERENCE_CLASS

GENERAL_METHOD = "forward_of_any_size"
"""Name of the reference's forward in a candidate that is given other sizes too."""


def general_forward(text: str) -> str:
    """Return the text of forward under its other name."""
    return text.replace("def forward(", f"def {GENERAL_METHOD}(", 1)


def text_of(lines: Sequence[str], node: ast.stmt) -> str:
    """Return a statement as it is written, decorators and its line's comment included."""
    first = node.lineno
    decorators = getattr(node, "decorator_list", [])
    if decorators:
        first = min(decorator.lineno for decorator in decorators)
    assert node.end_lineno is not None
    picked = list(lines[first - 1 : node.end_lineno])
    # Two statements on one line, or a last line without an end.
    if node.end_col_offset is not None:
        ending = picked[-1].encode()[: node.end_col_offset].decode()
        tail = picked[-1].encode()[node.end_col_offset :].decode().strip()
        picked[-1] = (ending + (f"  {tail}" if tail.startswith("#") else "")) + "\n"
    if not decorators and lines[first - 1].encode()[: node.col_offset].strip():
        picked[0] = picked[0].encode()[node.col_offset :].decode()
    return "".join(picked)


def class_line(lines: Sequence[str], model: ast.ClassDef) -> str:
    """Return the class statement with its decorators, without its body.

    Raises:
        NotRewritable: the body is on the same line.
    """
    first = min([model.lineno, *(d.lineno for d in model.decorator_list)])
    body = model.body[0]
    begins = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", []))])
    head = "".join(lines[first - 1 : begins - 1])
    stripped = [line for line in head.splitlines(keepends=True) if line.strip()]
    if not stripped:
        raise NotRewritable(f"class {REFERENCE_CLASS} is written on one line")
    return "".join(stripped)


def indent_of(lines: Sequence[str], model: ast.ClassDef) -> str:
    """Return the white space before a member of the class."""
    line = lines[model.body[0].lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def renamed(text: str) -> str:
    """Replace the name of the reference's class, in code only."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text + "\n").readline))
    rows = text.split("\n")
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        if token.type != tokenize.NAME or token.string != REFERENCE_CLASS:
            continue
        if place and tokens[place - 1].string == ".":
            continue
        row, column = token.start
        line = rows[row - 1]
        rows[row - 1] = line[:column] + CANDIDATE_CLASS + line[column + len(REFERENCE_CLASS) :]
    return "\n".join(rows)


def signature_of(forward: ast.FunctionDef) -> str:
    """Return the def line with annotations left out: their names may not be kept."""
    arguments = copy.deepcopy(forward.args)
    for arg in ast.walk(arguments):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return f"def forward({ast.unparse(arguments)}):"


def parameters_of(forward: ast.FunctionDef) -> tuple[str, ...]:
    """Return the names of the parameters, self left out; with * before a variadic one."""
    arguments = forward.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    return tuple(names)
