"""Gate 1: what a candidate's text alone says, by ast. Nothing of it is run.

Static text is a tripwire and never the whole defence: it rejects only what cannot work, and what
no honest kernel needs (exploits §E16). Words such as `pass` or `try` reject nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kopt.candidate import LANGUAGES, MAX_SOURCE_BYTES, Language
from kopt.evaluation import Check
from kopt.problem import CANDIDATE_CLASS
from kopt.static_kernels import kernel_names
from kopt.static_names import Names
from kopt.static_tripwires import look

BARE_BASES = ("torch.nn.Module", "torch.nn.modules.module.Module", "object")
"""Base classes that have no forward of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticReport:
    """What gate 1 found. The gate passes where `errors` and `tripwires` are both empty."""

    errors: tuple[str, ...] = ()
    """Why it can never become a callable, one line each: CompileFailed(stage="static")."""
    tripwires: tuple[Check, ...] = ()
    """Constructs that no honest kernel needs, `passed` False: Cheated(check=name, detail=detail).
    Names are `static:frames`, `static:patching`, …; the detail has the line number."""
    evidence: tuple[Check, ...] = ()
    """Notes to attach to the evaluation's checks: they decide nothing (`passed` True)."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels that the text defines: Triton functions, `__global__` functions,
    exported C functions; in order of appearance."""

    @property
    def passed(self) -> bool:
        """Whether the candidate goes on to be built."""
        return not self.errors and not self.tripwires


def static_check(
    source: str, *, language: Language, allowed: Collection[Language] = LANGUAGES
) -> StaticReport:
    """Read a candidate's text and report.

    Args:
        source: the candidate's Python text.
        language: what it says its kernels are written in.
        allowed: the languages that the device can build (`Target.languages`).
    """
    errors = [*_text_errors(source)]
    if language not in allowed:
        errors.append(
            f"language {language} cannot be built here; choose one of {', '.join(sorted(allowed))}"
        )
    if errors:
        return StaticReport(errors=tuple(errors))
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        return StaticReport(errors=(f"line {error.lineno or 0}: {error.msg}",))
    except (RecursionError, MemoryError):
        return StaticReport(errors=("nested too deeply for Python's parser; flatten it",))
    try:
        return _look(tree, language=language)
    except RecursionError:
        return StaticReport(errors=("nested too deeply to be read; flatten it",))


def _look(tree: ast.Module, *, language: Language) -> StaticReport:
    names = Names(tree)
    tripwires, notes = look(tree, names=names)
    kernels = kernel_names(tree, names=names)
    if not kernels and language != "torch":
        notes.append(
            Check(
                name="static:no_kernel",
                passed=True,
                detail=f"no {language} kernel was found in the text",
            )
        )
    error = _class_error(tree, names)
    return StaticReport(
        errors=() if error is None else (error,),
        tripwires=tuple(tripwires),
        evidence=tuple(notes),
        kernels=kernels,
    )


def _text_errors(source: str) -> Iterator[str]:
    try:
        size = len(source.encode("utf-8"))
    except UnicodeEncodeError as error:
        yield f"the source is not UTF-8 text: character {error.start} has no encoding"
        return
    if size > MAX_SOURCE_BYTES:
        yield f"the source has {size} bytes; at most {MAX_SOURCE_BYTES} are read"
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        yield f"line {line}: the source holds a NUL byte"


def _class_error(tree: ast.Module, names: Names) -> str | None:
    """Return why the text has no ModelNew that can be called, or None."""
    statements = list(_module_level(tree.body))
    classes = {entry.name: entry for entry in statements if isinstance(entry, ast.ClassDef)}
    bound = {
        target.id: entry.value
        for entry in statements
        if isinstance(entry, ast.Assign)
        for target in entry.targets
        if isinstance(target, ast.Name)
    }
    name = CANDIDATE_CLASS
    seen: set[str] = set()
    while name not in classes and name in bound and name not in seen:
        seen.add(name)
        value = bound[name]
        if not isinstance(value, ast.Name):
            return None  # made by a call: only running it tells
        name = value.id
    if name in classes:
        if _has_forward(classes[name], classes=classes, names=names, seen=set()):
            return None
        if _assigns_forward(tree):
            return None
        return (
            f"line {classes[name].lineno}: class {name} has no forward, neither its own nor "
            "an inherited one; define forward with the arguments of the reference's"
        )
    if any(_imports(entry, name) for entry in statements):
        return None
    return f"the source defines no class {CANDIDATE_CLASS}; define it at module level"


def _module_level(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of module level, those inside if, try and with included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for field in ("body", "orelse", "finalbody"):
                yield from _module_level(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                yield from _module_level(handler.body)


def _has_forward(
    node: ast.ClassDef, *, classes: dict[str, ast.ClassDef], names: Names, seen: set[str]
) -> bool:
    """Return whether a class has a forward, or a base of which the text cannot say."""
    if node.name in seen:
        return False
    seen.add(node.name)
    for entry in node.body:
        if isinstance(entry, ast.FunctionDef) and entry.name == "forward":
            return True
        if isinstance(entry, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "forward" for target in entry.targets
        ):
            return True
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            if _has_forward(classes[base.id], classes=classes, names=names, seen=seen):
                return True
        elif names.path(base) not in BARE_BASES:
            return True
    return False


def _assigns_forward(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "forward"
        and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )


def _imports(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and any(
        name == (entry.asname or entry.name) for entry in node.names
    )
