"""Candidates that CUTLASS's headers will certainly not compile, told before a compiler is started.

KernelPro §3.2.4's companion tool. It speaks only of what is certain: text that the module compiles
while it is imported, against a tree that was mined, with numbers and types that are written out,
outside of branches of the preprocessor and of templates that nobody uses. All else passes: the
compiler has the last word.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Sequence
from itertools import islice

from kopt.cutlass.constraint import MinedTree
from kopt.cutlass.native_text import NativeBuild, NativeText, native_builds
from kopt.cutlass.rules import Reading, atom_faults, header_faults, layout_faults, usage_faults

MAX_FAULTS = 8
MAX_FOUND = 64
"""Faults that are looked for; those told are different ones."""
MAX_NATIVE = 400_000
"""Characters of one native text; longer ones are left to the compiler."""
_MARKS = ("cute/", "cutlass/")
_UNREAD = ('R"', "??/")
"""Raw strings and trigraphs, which the scanner does not know."""


def uses_cutlass(source: str) -> bool:
    """Return whether a text may include headers of CUTLASS; quick, for the many that do not."""
    return "load_inline" in source and any(mark in source for mark in _MARKS)


def cutlass_faults(source: str, *, trees: Sequence[MinedTree]) -> tuple[str, ...]:
    """Return why a candidate cannot compile, one line each with its line and the rule.

    Args:
        source: the candidate's Python text.
        trees: that were mined; a build is held against the one whose headers it names.
    """
    if not uses_cutlass(source):
        return ()
    try:
        parsed = ast.parse(source)
        found = list(islice(_faults(parsed, trees), MAX_FOUND))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(dict.fromkeys(found))[:MAX_FAULTS]


def _faults(parsed: ast.Module, trees: Sequence[MinedTree]) -> Iterator[str]:
    for build in native_builds(parsed):
        tree = _tree_of(build, trees)
        if tree is None:
            continue
        alone = build.knows_all and len(build.includes) == 1
        for native in build.texts:
            if _is_read(native):
                yield from _text_faults(native, tree, is_only_tree=alone)


def _text_faults(native: NativeText, tree: MinedTree, *, is_only_tree: bool) -> Iterator[str]:
    reading = Reading(native)
    if not reading.includes_cutlass:
        return
    if is_only_tree:
        yield from header_faults(reading, tree)
    if not reading.scan.is_balanced:
        return  # the scanner has lost its way, or the compiler will say so
    yield from atom_faults(reading, tree)
    yield from usage_faults(reading, tree)
    yield from layout_faults(reading, tree)


def _tree_of(build: NativeBuild, trees: Sequence[MinedTree]) -> MinedTree | None:
    """Return the tree of the first folder that has CUTLASS in it; headers are found there first."""
    if not build.includes:
        return None
    first = posixpath.normpath(build.includes[0])
    return next((tree for tree in trees if posixpath.join(tree.root, "include") == first), None)


def _is_read(native: NativeText) -> bool:
    return len(native.text) <= MAX_NATIVE and not any(mark in native.text for mark in _UNREAD)
