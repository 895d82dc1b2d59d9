"""A problem at a smaller size: where a file says `SMALL = {"ROWS": 4}`, those constants change.

Kernels of production are timed at sizes that no processor gets through. A file whose sizes are
constants of its module may say which values are small enough to check it anywhere, in a dictionary
SMALL at its top level; what is timed is never them, unless `problems.sizes=small` asks for it.
"""

from __future__ import annotations

import ast
from typing import Literal

from kopt.prompts.parsing import parsed

Sizes = Literal["full", "small"]
SMALL_CONSTANT = "SMALL"


def with_sizes(source: str, sizes: Sizes) -> str:
    """Return a file's text at these sizes: as it is where they are full, or where it has no SMALL.

    Each constant that SMALL names, and that the file assigns at its top level, has SMALL's value.
    """
    if sizes == "full":
        return source
    tree = parsed(source)
    small = {} if tree is None else _small(tree)
    if tree is None or not small:
        return source
    lines = source.splitlines(keepends=True)
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name) and target.id in small:
                text = f"{target.id} = {small[target.id]!r}\n"
                lines[node.lineno - 1 : node.end_lineno] = [text]
    return "".join(lines)


def _small(tree: ast.Module) -> dict[str, object]:
    """What the file says is small; nothing where it says it in another form."""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == SMALL_CONSTANT
        ):
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                return {}
            return value if isinstance(value, dict) else {}
    return {}
