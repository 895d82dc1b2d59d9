"""Rules for Triton kernels that their text can break: masks, autotuned keys, unknown functions.

Source: KernelOPT App. A.2. Masks are asked for where `@triton.autotune` may make a block larger
than the tensor: of loads and stores whose address holds a block (`tl.arange` has gone into it).
Addresses of one element, block pointers and descriptors have other guards, and are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from kopt.static_names import Names, constant_text

JIT = ("triton.jit", "triton.runtime.jit.jit")
AUTOTUNE = ("triton.autotune", "triton.runtime.autotuner.autotune")
CONFIG = ("triton.Config", "triton.runtime.autotuner.Config")
LANGUAGE = "triton.language."
GUARDED = {f"{LANGUAGE}load": 1, f"{LANGUAGE}store": 2}
"""Function to the place of its mask among positional arguments."""
_BLOCKS = (f"{LANGUAGE}arange",)


def jit_functions(tree: ast.AST, names: Names) -> list[ast.FunctionDef]:
    """Return the functions under `@triton.jit`, in order."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and _decorator(node, names, JIT) is not None
    ]


def autotune_faults(tree: ast.AST, names: Names) -> Iterator[str]:
    """Yield what is wrong with autotuned kernels: keys of configurations, loads without a mask."""
    for kernel in jit_functions(tree, names):
        tuned = _decorator(kernel, names, AUTOTUNE)
        if not isinstance(tuned, ast.Call):
            continue
        parameters = [each.arg for each in (*kernel.args.posonlyargs, *kernel.args.args)] + [
            each.arg for each in kernel.args.kwonlyargs
        ]
        for line, key in _config_keys(tuned, names):
            if key not in parameters:
                yield (
                    f"line {line}: a configuration sets `{key}`, which `{kernel.name}` does not "
                    f"take; its parameters are {', '.join(parameters)}"
                )
        yield from _unmasked(kernel, names)


def unknown_calls(tree: ast.AST, names: Names, *, functions: Collection[str]) -> Iterator[str]:
    """Yield calls of what Triton's language does not have.

    Args:
        tree: of the program.
        names: of it.
        functions: what it has, as programs write it (`tl.load`); empty: unknown, nothing is said.
    """
    known = {each.partition("(")[0].removeprefix("tl.") for each in functions}
    if not known:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        path = names.path(node.func)
        name = path.removeprefix(LANGUAGE)
        if path != name and "." not in name and name not in known:
            yield f"line {node.lineno}: Triton has no `tl.{name}` here"


def _decorator(function: ast.FunctionDef, names: Names, paths: tuple[str, ...]) -> ast.expr | None:
    for each in function.decorator_list:
        if names.path(each.func if isinstance(each, ast.Call) else each) in paths:
            return each
    return None


def _config_keys(tuned: ast.Call, names: Names) -> Iterator[tuple[int, str]]:
    """Line and name of everything that its configurations set, as far as they are literals."""
    for node in ast.walk(tuned):
        if not isinstance(node, ast.Call) or names.path(node.func) not in CONFIG:
            continue
        for values in node.args[:1]:
            if isinstance(values, ast.Dict):
                for key in values.keys:
                    if text := constant_text(key):
                        yield node.lineno, text


def _unmasked(kernel: ast.FunctionDef, names: Names) -> Iterator[str]:
    blocks = _names_of_blocks(kernel, names)
    for node in ast.walk(kernel):
        if not isinstance(node, ast.Call):
            continue
        path = names.path(node.func)
        place = GUARDED.get(path)
        if place is None or not node.args or not _holds_block(node.args[0], blocks, names):
            continue
        given = {each.arg for each in node.keywords}
        if len(node.args) <= place and not given & {"mask", "boundary_check", None}:
            yield (
                f"line {node.lineno}: `tl.{path.removeprefix(LANGUAGE)}` without a mask in the "
                f"autotuned kernel `{kernel.name}`: a larger block leaves the tensor"
            )


def _names_of_blocks(kernel: ast.FunctionDef, names: Names) -> set[str]:
    """Names of a kernel that hold a block, followed through its assignments to the end."""
    assigned = [
        (target.id, node.value)
        for node in ast.walk(kernel)
        if isinstance(node, ast.Assign | ast.AugAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    blocks: set[str] = set()
    while True:
        more = {name for name, value in assigned if _holds_block(value, blocks, names)} - blocks
        if not more:
            return blocks
        blocks |= more


def _holds_block(node: ast.expr, blocks: set[str], names: Names) -> bool:
    """Whether an expression's value is a block of addresses or offsets."""
    if isinstance(node, ast.Call):
        # What a call makes of blocks may be one element (a sum); only arange and casts are sure.
        if names.path(node.func) in _BLOCKS:
            return True
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr == "to":
            return _holds_block(called.value, blocks, names)
        return False
    if isinstance(node, ast.Name):
        return node.id in blocks
    if isinstance(node, ast.BinOp):
        return _holds_block(node.left, blocks, names) or _holds_block(node.right, blocks, names)
    if isinstance(node, ast.Subscript):
        return _holds_block(node.value, blocks, names)
    return False
