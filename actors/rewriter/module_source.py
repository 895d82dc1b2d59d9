"""The candidate's file: what the reference's constructor needs, and a new forward.

The constructor stays as it is written, so that parameters have the same names and are drawn in
the same order; the class is renamed, and what only the inputs needed is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.source_names import (
    bound_names,
    is_docstring,
    is_kept,
    needed_names,
    reachable_members,
)
from kopt.actors.rewriter.source_text import (
    class_line,
    general_forward,
    indent_of,
    parameters_of,
    renamed,
    signature_of,
    text_of,
)
from kopt.problem import (
    INPUT_CASES_FUNCTION,
    REFERENCE_CLASS,
)


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


def skeleton(source: str, *, keep_forward: bool = False) -> Skeleton:
    """Take the reference's source apart.

    Args:
        source: of the problem.
        keep_forward: keep the reference's forward in the head, as for a problem that asks for
            several sizes.

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
    is_general = keep_forward or any(
        INPUT_CASES_FUNCTION in bound_names(node) for node in tree.body
    )
    if is_general and forward not in model.body:
        raise NotRewritable(f"{REFERENCE_CLASS} inherits forward, which is needed as it is written")
    kept = [n for n in model.body if not is_docstring(n) and (is_general or n is not forward)]
    kept = reachable_members(kept, also=("forward",) if is_general else ())
    members = [
        general_forward(text_of(lines, node)) if node is forward else text_of(lines, node)
        for node in kept
    ]
    head = class_line(lines, model) + "".join(f"\n{member}" for member in members)
    needed = needed_names(tree, [*model.bases, *model.keywords, *kept])
    imports, definitions = [], []
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(text_of(lines, node).rstrip())
        elif node is not model and is_kept(node, needed):
            definitions.append(renamed(text_of(lines, node).rstrip()))
            bound |= bound_names(node)
    return Skeleton(
        imports=tuple(imports),
        definitions=tuple(definitions),
        bound=frozenset(bound),
        head=renamed(head.rstrip()),
        signature=signature_of(forward),
        parameters=parameters_of(forward),
        owner=(*forward.args.posonlyargs, *forward.args.args)[0].arg,
        indent=indent_of(lines, model),
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
    methods: Sequence[Sequence[str]] = (),
) -> str:
    """Put a candidate's file together.

    Args:
        parts: of the reference.
        header: the file's docstring, without quotes.
        imports: further lines; those the reference has are not repeated.
        definitions: source of kernels, module level.
        doc: one line about forward.
        body: statements of forward, not indented.
        methods: more methods of the class, not indented.
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
    for method in reversed(methods):
        forward = [*(one + line if line else "" for line in method), "", *forward]
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
