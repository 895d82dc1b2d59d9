"""Module texts: whether a text is a whole program that defines ModelNew, by its tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.candidate import MAX_SOURCE_BYTES
from kopt.problem import CANDIDATE_CLASS
from kopt.prompts.parsing import parsed

MAX_PARSED_CHARACTERS = 4_000_000
"""Characters given to Python's parser for one answer, trials that fail included."""
_CLASS_LINE = re.compile(rf"^class[ \t]{{1,8}}{CANDIDATE_CLASS}\b[^\n{{;]{{0,400}}:", re.MULTILINE)
_DIFF = re.compile(
    r"^(?:@@ -\d|diff --git |<{7} |>{7} |\*{3} Begin Patch|--- \S+\n\+{3} )", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleText:
    """A text that defines ModelNew at module level, or is at least meant to."""

    source: str
    tree: ast.Module | None
    """None where it does not parse: the evaluator will say so, with the line."""

    @property
    def is_sketch(self) -> bool:
        """Whether its ModelNew is an outline: no method of it does anything."""
        return self.tree is not None and any(
            _is_outline(node)
            for node in _module_level(self.tree.body)
            if isinstance(node, ast.ClassDef) and node.name == CANDIDATE_CLASS
        )


class ModuleReader:
    """Reads texts of one answer, with a bound on the work of all of them."""

    def __init__(self) -> None:
        """Begin an answer."""
        self._left = MAX_PARSED_CHARACTERS

    def whole(self, text: str) -> ModuleText | None:
        """Return the text as a module that parses and defines ModelNew; None where it does not."""
        if CANDIDATE_CLASS not in text or not self._afford(text):
            return None
        source = as_source(text)
        tree = parsed(source)
        if tree is None or not defines_candidate(tree):
            return None
        return ModuleText(source=source, tree=tree)

    def _afford(self, text: str) -> bool:
        if len(text) > min(self._left, MAX_SOURCE_BYTES):
            return False
        self._left -= len(text)
        return True


def is_meant(text: str) -> bool:
    """Return whether a text that does not parse has ModelNew's class line: a module with errors."""
    return _CLASS_LINE.search(text) is not None


def is_diff(text: str) -> bool:
    """Return whether a text holds the marks of a patch."""
    return _DIFF.search(text) is not None


def as_source(text: str) -> str:
    """Return a block's text as the source of a module: no empty lines round it, one at its end."""
    return text.strip("\n").rstrip() + "\n"


def defines_candidate(tree: ast.Module) -> bool:
    """Return whether a module binds ModelNew itself, by a class or an assignment.

    One that imports it shows how another is used.
    """
    return any(_binds(statement) for statement in _module_level(tree.body))


def _binds(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return statement.name == CANDIDATE_CLASS
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return any(isinstance(each, ast.Name) and each.id == CANDIDATE_CLASS for each in targets)


def _module_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of module level, those inside if, try and with included."""
    waiting = list(reversed(body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            handlers = getattr(statement, "handlers", [])
            for part in (statement, *handlers):
                for field in ("body", "orelse", "finalbody"):
                    waiting.extend(reversed(getattr(part, field, [])))


def _is_outline(node: ast.ClassDef) -> bool:
    """Whether a class leaves out what it does: its forward, or all that it has, says nothing."""
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    forward = [each.body for each in methods if each.name == "forward"]
    bodies = forward or [each.body for each in methods] or [node.body]
    return all(_says_nothing(statement) for body in bodies for statement in body)


def _says_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )
