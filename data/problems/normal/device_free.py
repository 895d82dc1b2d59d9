"""Inputs made without a device: the contract has none, and whoever runs a problem places them."""

from __future__ import annotations

import ast
import re

_DEVICE_WORD = re.compile(r"(^|_)(cuda|cpu|gpu|device)", re.IGNORECASE)


def without_device(source: str, *, makers: set[str]) -> str:
    """Return a module's text in which these functions name no device.

    `device=` of any call goes, and so do `.cuda()` and `.to("cuda")`: the text of a function that
    has one is written anew.
    """
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if not isinstance(node, ast.FunctionDef) or node.name not in makers:
            continue
        before = ast.dump(node)
        _Dropper().visit(node)
        if ast.dump(node) != before:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            lines[first : node.end_lineno] = [ast.unparse(node) + "\n"]
    return "".join(lines)


class _Dropper(ast.NodeTransformer):
    """Takes devices out of calls."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        node.keywords = [each for each in node.keywords if each.arg != "device"]
        if isinstance(node.func, ast.Attribute):
            plain = not node.keywords
            if node.func.attr in ("cuda", "cpu") and plain and not node.args:
                return node.func.value
            if node.func.attr == "to" and plain and (not node.args or _is_device(node)):
                return node.func.value
        return node


def _is_device(node: ast.Call) -> bool:
    """Whether the one argument of a call is a device by its looks."""
    if len(node.args) != 1:
        return False
    value = node.args[0]
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str) and bool(_DEVICE_WORD.search(value.value))
    name = value.func if isinstance(value, ast.Call) else value
    last = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return bool(_DEVICE_WORD.search(last))
