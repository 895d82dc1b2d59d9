"""Names: what a dotted expression of a candidate's text refers to, aliases followed.

`import torch as t; f = t.cuda; f.Event` is `torch.cuda.Event`, and so is
`getattr(__import__("torch").cuda, "Event")`. Scopes are not kept apart: a tripwire may look at
one name too many, never at one too few.
"""

from __future__ import annotations

import ast


class Names:
    """The aliases of one module text."""

    def __init__(self, tree: ast.AST) -> None:
        """Read every import and every plain `name = dotted.path` of a parsed text."""
        self._aliases: dict[str, str] = {}
        self.imported: list[tuple[str, int]] = []
        """Full name of everything that is imported, with its line, in order."""
        for node in ast.walk(tree):
            self._read_import(node)
        # Twice: an alias of an alias may stand before what it refers to.
        for _ in range(2):
            for node in ast.walk(tree):
                if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
                    self._read_assignment(node)

    def path(self, node: ast.AST | None) -> str:
        """Return the dotted path that an expression refers to; empty for none."""
        if isinstance(node, ast.Name):
            return self._aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return _join(self.path(node.value), node.attr)
        if isinstance(node, ast.Call):
            return self._called(node)
        return ""

    def _called(self, node: ast.Call) -> str:
        function = self.path(node.func)
        first = node.args[0] if node.args else None
        if function.removeprefix("builtins.") == "getattr" and len(node.args) >= 2:
            return _join(self.path(first), constant_text(node.args[1]))
        if function.removeprefix("builtins.") in ("__import__", "importlib.import_module"):
            return constant_text(first)
        return ""

    def _read_import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for name in node.names:
                self.imported.append((name.name, node.lineno))
                if name.asname:
                    self._aliases[name.asname] = name.name
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                full = f"{node.module or ''}.{name.name}"
                self.imported.append((full, node.lineno))
                self._aliases[name.asname or name.name] = full
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            function = ast.unparse(node.func).removeprefix("builtins.")
            if node.args and function in ("__import__", "importlib.import_module", "import_module"):
                module = constant_text(node.args[0])
                if module:
                    self.imported.append((module, node.lineno))

    def _read_assignment(self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> None:
        path = self.path(node.value)
        if not path:
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and target.id != path.partition(".")[0]:
                self._aliases[target.id] = path


def constant_text(node: ast.AST | None) -> str:
    """Return the text of a literal, of joined literals or of an f-string; empty for others.

    What an f-string fills in stands as `{}`.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, bytes):
        return node.value.decode("latin-1")
    if isinstance(node, ast.JoinedStr):
        return "".join(
            constant_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return constant_text(node.left) + constant_text(node.right)
    return ""


def _join(base: str, attribute: str) -> str:
    return f"{base}.{attribute}" if base and attribute else ""
