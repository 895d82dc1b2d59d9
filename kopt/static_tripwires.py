"""Tripwires: constructs of a candidate's text that no honest kernel needs, and mere notes.

Source: exploits §E16 and classes 1-9, 25-31, 57, 58. The process that runs the candidate is the
defence; these lines tell a person what was tried. Honest C++ candidates run compilers, load
libraries by ctypes, write temporary files and read the environment: none of that is listed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kopt.evaluation import Check
from kopt.static_kernels import device_texts
from kopt.static_names import Names, constant_text
from kopt.static_tables import (
    C_NOTES,
    DANGEROUS_C,
    DANGEROUS_TEXT,
    DECODERS,
    FORBIDDEN_PATHS,
    FRAME_ATTRIBUTES,
    INSTALL,
    LAZY_METHODS,
    MUTATORS,
    NETWORK_MODULES,
    NOTES,
    PROTECTED_ROOTS,
    REFERENCE_MODULES,
    SETTINGS,
    SYSTEM_TABLES,
)

MAX_NESTED_EXEC = 3


def look(tree: ast.AST, *, names: Names, depth: int = 0) -> tuple[list[Check], list[Check]]:
    """Return (tripwires, notes) of a parsed text; the first of each name and construct.

    Literals that are given to exec or eval are parsed and looked at too.
    """
    tripwires = [_check(*found, passed=False) for found in _tripwires(tree, names)]
    notes = [_check(*found, passed=True) for found in _notes(tree, names)]
    for node in ast.walk(tree):
        if depth < MAX_NESTED_EXEC and _is_exec(node, names) and isinstance(node, ast.Call):
            inner = _parsed(constant_text(node.args[0]) if node.args else "")
            if inner is not None:
                more = look(inner, names=Names(inner), depth=depth + 1)
                tripwires += more[0]
                notes += more[1]
    return list(dict.fromkeys(tripwires)), _first_of_each(notes)


def _tripwires(tree: ast.AST, names: Names) -> Iterator[tuple[str, int, str]]:
    for module, line in names.imported:
        if _within(module, NETWORK_MODULES):
            yield "network", line, f"imports {module}"
        if _within(module, REFERENCE_MODULES):
            yield "reference", line, f"imports {module}"
        for name, paths in FORBIDDEN_PATHS.items():
            if module in paths:
                yield name, line, f"imports {module}"
    documentation = _docstrings(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute):
            yield from _attribute(node, names, line)
        elif isinstance(node, ast.Subscript):
            yield from _subscript(node, names, line)
        elif isinstance(node, ast.Call):
            yield from _call(node, names, line)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node, names)
        elif isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in documentation:
            for name, pattern in DANGEROUS_TEXT:
                match = pattern.search(constant_text(node))
                if match:
                    yield name, line, f"names {match[0]}"
    for line, text in device_texts(tree):
        for name, pattern in DANGEROUS_C:
            match = pattern.search(text)
            if match:
                yield name, line, f"device text holds {match[0]}"


def _attribute(node: ast.Attribute, names: Names, line: int) -> Iterator[tuple[str, int, str]]:
    path = names.path(node)
    for name, paths in FORBIDDEN_PATHS.items():
        if path.removeprefix("builtins.") in paths:
            yield name, line, f"uses {path}"
    if node.attr in FRAME_ATTRIBUTES:
        yield "frames", line, f"reads .{node.attr}"
    if node.attr in ("ptrace", "process_vm_readv", "process_vm_writev"):
        yield "memory", line, f"uses .{node.attr}"
    if isinstance(node.ctx, ast.Store | ast.Del) and (_is_patch(path) or path in SYSTEM_TABLES):
        yield "patching", line, f"sets {path}"


def _subscript(node: ast.Subscript, names: Names, line: int) -> Iterator[tuple[str, int, str]]:
    if not isinstance(node.ctx, ast.Store | ast.Del):
        return
    table = _table(node.value, names)
    if table == "sys.modules" and ast.unparse(node.slice).endswith((".name", "__name__")):
        return  # importlib's own recipe for a module made at run time
    if table:
        yield "patching", line, f"sets an entry of {table}"


def _table(node: ast.expr, names: Names) -> str:
    """Return the table of names that an expression is, such as `torch.__dict__`; or empty."""
    path = names.path(node)
    if isinstance(node, ast.Call) and names.path(node.func) == "vars" and node.args:
        path = f"{names.path(node.args[0])}.__dict__"
    if path in SYSTEM_TABLES or path in ("__builtins__", "__builtins__.__dict__"):
        return path
    return path if path.endswith(".__dict__") and _is_patch(path) else ""


def _call(node: ast.Call, names: Names, line: int) -> Iterator[tuple[str, int, str]]:
    function = names.path(node.func).removeprefix("builtins.")
    if function in ("setattr", "delattr", "object.__setattr__", "type.__setattr__") and node.args:
        target = names.path(node.args[0])
        named = constant_text(node.args[1]) if len(node.args) > 1 else ""
        if _is_patch(f"{target}.{named or '?'}"):
            yield "patching", line, f"sets {target}.{named or '…'}"
    if function.startswith(("unittest.mock.patch", "mock.patch")):
        yield "patching", line, f"calls {function}"
    if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        table = _table(node.func.value, names)
        if table:
            yield "patching", line, f"changes {table}"
    if function == "getattr" and len(node.args) >= 2:
        path = names.path(node)
        for name, paths in FORBIDDEN_PATHS.items():
            if path in paths:
                yield name, line, f"uses {path}"
        if constant_text(node.args[1]) in FRAME_ATTRIBUTES:
            yield "frames", line, f"reads .{constant_text(node.args[1])}"
    if _is_exec(node, names) and any(_decodes(part, names) for part in ast.walk(node)):
        yield "obfuscation", line, f"{function} of decoded text"
    if function.startswith("subprocess.") or function in ("os.system", "os.popen"):
        words = [word for arg in node.args[:1] for word in _words(arg)]
        if words and (INSTALL.match(words[0]) or words[1:3] in (["-m", "pip"], ["-m", "uv"])):
            yield "network", line, f"runs {' '.join(words[:4])}"


def _class(node: ast.ClassDef, names: Names) -> Iterator[tuple[str, int, str]]:
    methods = [entry.name for entry in node.body if isinstance(entry, ast.FunctionDef)]
    for method in methods:
        if method in LAZY_METHODS:
            yield "lazy_output", node.lineno, f"class {node.name} defines {method}"
    if any(names.path(base) == "torch.Tensor" for base in node.bases):
        yield "lazy_output", node.lineno, f"class {node.name} is a tensor"


def _notes(tree: ast.AST, names: Names) -> Iterator[tuple[str, int, str]]:
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Try):
            yield "try", line, "has a try; what it falls back to may not be the kernel"
        elif isinstance(node, ast.Attribute | ast.Name):
            path = names.path(node)
            for name, paths in NOTES:
                if path in paths:
                    yield name, line, f"uses {path}"
            stored = isinstance(node.ctx, ast.Store)
            if stored and _is_setting(path) and isinstance(node, ast.Attribute):
                yield "settings", line, f"sets {path}"
            if isinstance(node, ast.Attribute) and path in ("torch.float16", "torch.bfloat16"):
                yield "precision", line, f"names {path}"
    for line, text in device_texts(tree):
        for name, pattern in C_NOTES:
            match = pattern.search(text)
            if match:
                yield name, line, f"device text holds {match[0]}"


def _check(name: str, line: int, detail: str, *, passed: bool) -> Check:
    return Check(name=f"static:{name}", passed=passed, detail=f"line {line}: {detail}")


def _first_of_each(checks: list[Check]) -> list[Check]:
    first: dict[str, Check] = {}
    for check in checks:
        first.setdefault(check.name, check)
    return list(first.values())


def _is_patch(path: str) -> bool:
    """Return whether setting this attribute changes what others in the process call."""
    return "." in path and path.split(".")[0] in PROTECTED_ROOTS and not _is_setting(path)


def _is_setting(path: str) -> bool:
    parts = path.split(".")
    return parts[0] in PROTECTED_ROOTS and any(part in SETTINGS for part in parts[1:])


def _within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _is_exec(node: ast.AST, names: Names) -> bool:
    return isinstance(node, ast.Call) and names.path(node.func).removeprefix("builtins.") in (
        "exec",
        "eval",
    )


def _decodes(node: ast.AST, names: Names) -> bool:
    return isinstance(node, ast.Call) and names.path(node.func).startswith(DECODERS)


def _parsed(text: str) -> ast.AST | None:
    try:
        return ast.parse(text) if text.strip() else None
    except (SyntaxError, ValueError):
        return None


def _words(node: ast.expr) -> list[str]:
    if isinstance(node, ast.List | ast.Tuple):
        return [constant_text(item) for item in node.elts]
    return constant_text(node).split()


def _docstrings(tree: ast.AST) -> set[int]:
    """Return the ids of literals that stand alone as a statement: text for people."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
