"""The candidate's file: what the reference's constructor needs, and a new forward.

The constructor stays as it is written, so that parameters have the same names and are drawn in
the same order; the class is renamed, and what only the inputs needed is left out.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kopt.actors.rewriter.graph import NotRewritable
from kopt.problem import (
    CANDIDATE_CLASS,
    INIT_INPUTS_FUNCTION,
    INPUT_CASES_FUNCTION,
    INPUTS_FUNCTION,
    REFERENCE_CLASS,
)

LEFT_OUT = frozenset({INPUTS_FUNCTION, INIT_INPUTS_FUNCTION, INPUT_CASES_FUNCTION})
GENERAL_METHOD = "forward_of_any_size"
"""Name of the reference's forward in a candidate that is given other sizes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skeleton:
    """The parts of the reference's source that a candidate keeps."""

    imports: tuple[str, ...]
    definitions: tuple[str, ...]
    """Constants, functions and classes that the constructor needs."""
    bound: frozenset[str]
    """Names that the definitions bind."""
    head: str
    """The class statement and its members before forward, renamed."""
    signature: str
    """`def forward(self, …):`, as written."""
    parameters: tuple[str, ...]
    """Names of forward's parameters, self left out; with * before a variadic one."""
    owner: str
    """What forward calls the module: self."""
    indent: str
    """White space before a member of the class."""
    is_general: bool
    """Whether the head has the reference's forward, for other sizes than those captured."""


def skeleton(source: str) -> Skeleton:
    """Take the reference's source apart.

    Raises:
        NotRewritable: Model or its forward is not written out in the source.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    model = next(
        (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == REFERENCE_CLASS), None
    )
    if model is None:
        raise NotRewritable(f"{REFERENCE_CLASS} is no class at the top level of the source")
    forward = _forward(tree, model)
    # A problem with input cases asks for other sizes than those that are written into the code.
    is_general = any(INPUT_CASES_FUNCTION in _bound(node) for node in tree.body)
    if is_general and forward not in model.body:
        raise NotRewritable(f"{REFERENCE_CLASS} inherits forward, and is asked for other sizes")
    kept = [n for n in model.body if not _is_docstring(n) and (is_general or n is not forward)]
    kept = _reachable_members(kept, also=("forward",) if is_general else ())
    members = [
        _general(_text(lines, node)) if node is forward else _text(lines, node) for node in kept
    ]
    head = _text_of_class_line(lines, model) + "".join(f"\n{member}" for member in members)
    needed = _needed(tree, [*model.bases, *model.keywords, *kept])
    imports, definitions = [], []
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(_text(lines, node).rstrip())
        elif node is not model and _keeps(node, needed):
            definitions.append(_renamed(_text(lines, node).rstrip()))
            bound |= _bound(node)
    return Skeleton(
        imports=tuple(imports),
        definitions=tuple(definitions),
        bound=frozenset(bound),
        head=_renamed(head.rstrip()),
        signature=_signature(forward),
        parameters=_parameters(forward),
        owner=(*forward.args.posonlyargs, *forward.args.args)[0].arg,
        indent=_indent(lines, model),
        is_general=is_general,
    )


def assemble(
    parts: Skeleton,
    *,
    header: str,
    imports: Sequence[str],
    definitions: Iterable[str],
    doc: str,
    body: Sequence[str],
    method: Sequence[str] = (),
) -> str:
    """Put a candidate's file together.

    Args:
        parts: of the reference.
        header: the file's docstring, without quotes.
        imports: further lines; those the reference has are not repeated.
        definitions: source of kernels, module level.
        doc: one line about forward.
        body: statements of forward, not indented.
        method: one more method of the class, not indented.
    """
    future = [line for line in parts.imports if "__future__" in line]
    own = [line for line in parts.imports if "__future__" not in line]
    given = {line for block in parts.imports for line in block.splitlines()}
    added = [line for line in imports if line not in given]
    blocks = [f'"""{header}\n"""' if "\n" in header else f'"""{header}"""']
    if future:
        blocks.append("\n".join(future))
    blocks.append("\n".join([*(a for a in added if "torch" not in a), *own]))
    torch_lines = [a for a in added if "torch" in a]
    if torch_lines:
        blocks[-1] = "\n".join(filter(None, [blocks[-1], *torch_lines]))
    text = "\n\n".join(blocks)
    before = ""
    for block in [*parts.definitions, *definitions]:
        short = "\n" not in block.strip() and "\n" not in before
        gap = "\n" if short and before else "\n\n" if short else "\n\n\n"
        before = block.strip("\n")
        text += gap + before
    one, two = parts.indent, parts.indent * 2
    forward = [f"{one}{parts.signature}", f'{two}"""{doc}"""', *(f"{two}{s}" for s in body)]
    if method:
        forward = [*(one + line for line in method), "", *forward]
    return text + "\n\n\n" + parts.head + "\n\n" + "\n".join(forward) + "\n"


def _forward(tree: ast.Module, model: ast.ClassDef) -> ast.FunctionDef:
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    waiting, seen = [model], set()
    while waiting:
        current = waiting.pop(0)
        if current.name in seen:
            continue
        seen.add(current.name)
        for node in current.body:
            if isinstance(node, ast.FunctionDef) and node.name == "forward":
                return node
        names = [base.id for base in current.bases if isinstance(base, ast.Name)]
        waiting.extend(classes[name] for name in names if name in classes)
    raise NotRewritable(f"{REFERENCE_CLASS} has no forward in the source")


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _general(text: str) -> str:
    """Return the text of forward under its other name."""
    return text.replace("def forward(", f"def {GENERAL_METHOD}(", 1)


def _reachable_members(members: list[ast.stmt], *, also: Sequence[str]) -> list[ast.stmt]:
    """Drop methods that neither construction nor `also` calls by name."""
    methods = {n.name: n for n in members if isinstance(n, ast.FunctionDef)}
    reached = {name for name in methods if name.startswith("__") or name in also}
    reached |= {n.name for n in methods.values() if n.decorator_list}
    waiting: list[ast.stmt] = [n for n in members if getattr(n, "name", None) not in methods]
    waiting += [methods[name] for name in reached]
    while waiting:
        for leaf in ast.walk(waiting.pop()):
            name = leaf.attr if isinstance(leaf, ast.Attribute) else getattr(leaf, "id", None)
            if name in methods and name not in reached:
                reached.add(name)
                waiting.append(methods[name])
    return [n for n in members if getattr(n, "name", None) not in methods or n.name in reached]  # type: ignore[attr-defined]


def _needed(tree: ast.Module, roots: Sequence[ast.AST]) -> set[str]:
    """Return the names that the roots, and what they use, read at module level."""
    by_name: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        for name in _bound(node):
            by_name.setdefault(name, []).append(node)
    needed: set[str] = set()
    waiting: list[ast.AST] = list(roots)
    while waiting:
        for name in _global_names(waiting.pop()):
            if name not in needed and name in by_name:
                needed.add(name)
                waiting.extend(by_name[name])
    return needed


def _global_names(node: ast.AST) -> set[str]:
    """Return the names that a piece of code may read from its module."""
    names: set[str] = set()
    if isinstance(node, ast.Name):
        names.add(node.id)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        # An annotation in quotes, or globals()["name"].
        names.add(node.value)
    for child in ast.iter_child_nodes(node):
        names |= _global_names(child)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        # Defaults and decorators are evaluated outside, where the names may mean the module's.
        outside: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        outside += getattr(node, "decorator_list", [])
        names -= _local_names(node)
        for part in outside:
            names |= _global_names(part)
    return names


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    named += [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return {arg.arg for arg in named}


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    names = {
        leaf.id
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store)
    }
    for leaf in ast.walk(node):
        if isinstance(leaf, ast.FunctionDef | ast.ClassDef):
            names.add(leaf.name)
    return names


def _keeps(node: ast.stmt, needed: set[str]) -> bool:
    if _is_docstring(node) or _is_main_guard(node):
        return False
    bound = _bound(node)
    if bound & LEFT_OUT:
        return False
    # A statement that binds nothing was written for its effect (a default dtype, a warning filter).
    return not bound or bool(bound & needed)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _text(lines: Sequence[str], node: ast.stmt) -> str:
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


def _text_of_class_line(lines: Sequence[str], model: ast.ClassDef) -> str:
    first = min([model.lineno, *(d.lineno for d in model.decorator_list)])
    body = model.body[0]
    begins = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", []))])
    head = "".join(lines[first - 1 : begins - 1])
    stripped = [line for line in head.splitlines(keepends=True) if line.strip()]
    if not stripped:
        raise NotRewritable(f"class {REFERENCE_CLASS} is written on one line")
    return "".join(stripped)


def _indent(lines: Sequence[str], model: ast.ClassDef) -> str:
    line = lines[model.body[0].lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _renamed(text: str) -> str:
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


def _signature(forward: ast.FunctionDef) -> str:
    """Return the def line with annotations left out: their names may not be kept."""
    arguments = ast.parse(ast.unparse(forward)).body[0].args  # type: ignore[attr-defined]
    for arg in ast.walk(arguments):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return f"def forward({ast.unparse(arguments)}):"


def _parameters(forward: ast.FunctionDef) -> tuple[str, ...]:
    arguments = forward.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
    if arguments.vararg:
        names.append(f"*{arguments.vararg.arg}")
    return tuple(names)
