"""A function as a module of the contract: `forward` with the function's own signature."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence

from kopt.data.problems.normal.parts import Parts

_TEMPLATE = '''

class {name}(torch.nn.Module):
    """{what}"""

    def forward(self{parameters}):
        return {call}
'''


def wrapped(name: str, *, arguments: ast.arguments, calls: str, what: str) -> str:
    """Return the text of a module whose forward calls a function.

    Args:
        name: of the class.
        arguments: of the function.
        calls: what is called, such as `run` or `library.run`.
        what: its docstring.
    """
    plain = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + [*arguments.defaults]
    parameters = [_parameter(arg, value) for arg, value in zip(plain, defaults, strict=True)]
    passed = list(plain)
    if arguments.vararg is not None:
        parameters.append(f"*{arguments.vararg.arg}")
        passed.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        parameters.append("*")
    for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(_parameter(each.arg, value))
        passed.append(f"{each.arg}={each.arg}")
    return _TEMPLATE.format(
        name=name,
        what=what,
        parameters="".join(f", {each}" for each in parameters),
        call=f"{calls}({', '.join(passed)})",
    )


def module_text(
    parts: Parts, *, names: Sequence[str], tail: str = "", with_docstring: bool = False
) -> str:
    """Return a module of what some names need, with a tail that needs torch.

    Args:
        parts: of the whole file.
        names: that it defines.
        tail: text at its end.
        with_docstring: whether it begins with the file's docstring.
    """
    needed = parts.needs(*names, *(["torch"] if tail else []))
    text = parts.text(needed).lstrip("\n")
    if tail and "torch" not in needed:
        text = f"{text}\nimport torch\n" if "from __future__" in text else f"import torch\n{text}"
    first = parts.tree.body[0] if parts.tree.body else None
    documentation = ast.get_docstring(parts.tree, clean=False)
    if with_docstring and documentation is not None and first is not None:
        text = f"{ast.get_source_segment(parts.source, first)}\n\n{text}"
    return text.rstrip() + "\n" + tail


def renamed(source: str, *, old: str, new: str) -> str:
    """Return a module's text with one of its own names changed; attributes keep theirs."""
    lines = source.splitlines(keepends=True)
    found = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string == old and before != ".":
            found.append(token.start)
        before = token.string
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines)


def _parameter(name: str, default: ast.expr | None) -> str:
    return name if default is None else f"{name}={ast.unparse(default)}"
