"""One candidate's source from a graph: guards, calls, kernels, and a header that says what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx
from torch.utils import _pytree as pytree

from kopt.actors.rewriter.capture import Captured
from kopt.actors.rewriter.codegen import FusedKernel, cpp_loader_source
from kopt.actors.rewriter.emit import emit_body
from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.module_source import Skeleton, assemble
from kopt.actors.rewriter.plan import Plan, language_of
from kopt.actors.rewriter.reference import ModuleMode
from kopt.actors.rewriter.rules import RULES
from kopt.candidate import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A candidate's text."""

    source: str
    language: Language
    strategy: str


def write_candidate(
    captured: Captured,
    parts: Skeleton,
    *,
    graph: fx.GraphModule,
    applied: Sequence[str],
    plan: Plan,
    mode: ModuleMode,
    kernels: Sequence[FusedKernel] = (),
) -> Written:
    """Write the file.

    Raises:
        NotRewritable: an argument or a result of forward has no Python spelling here.
    """
    owner = parts.owner
    paths = {name: _path(parts, arg.path) for name, arg in captured.arguments.items()}
    if not paths:
        raise NotRewritable("forward is given no tensor")
    where = f"{next(iter(paths.values()))}.device"
    leaves = dict(paths)
    leaves |= {name: _member(owner, path) for name, path in captured.attributes.items()}
    for name, value in captured.literals.items():
        leaves[name] = f"torch.tensor({value.tolist()!r}, dtype={value.dtype}, device={where})"
    body = emit_body(
        graph,
        leaves=leaves,
        taken=[p.lstrip("*") for p in parts.parameters] + [owner, "torch", "F"],
        device=where,
        kernels=kernels,
    )
    lines = [*_guards(captured, parts, paths)]
    lines += [f"{_member(owner, e.attribute)}.add_({e.amount})" for e in captured.effects]
    lines += body.lines
    lines.append(f"return {_result(captured, body.results)}")
    languages = {kernel.language for kernel in kernels}
    definitions = [kernel.definition for kernel in kernels if kernel.definition]
    if "cpp" in languages:
        definitions.insert(0, cpp_loader_source())
    if "F" in parts.bound or "F" in parts.parameters:
        lines = [re.sub(r"\bF\.(?=\w+\()", "torch.nn.functional.", line) for line in lines]
    imports = ["import torch"]
    if any(re.search(r"\bF\.\w+\(", line) for line in lines):
        imports.append("import torch.nn.functional as F")
    imports += [line for kernel in kernels for line in kernel.imports]
    strategy = _words(applied, kernels)
    source = assemble(
        parts,
        header=_header(applied, kernels, mode),
        imports=list(dict.fromkeys(imports)),
        definitions=[plan.marker(), *definitions],
        doc=f"{strategy[0].upper()}{strategy[1:]}.",
        body=lines,
    )
    return Written(source=source, language=language_of(languages), strategy=strategy)


def _member(owner: str, path: str) -> str:
    return owner + path if path.startswith("[") else f"{owner}.{path}"


def _path(parts: Skeleton, path: tuple[int | str, ...]) -> str:
    """Return the expression of an argument, from forward's parameters."""
    first, *rest = path
    assert isinstance(first, int)
    for place, name in enumerate(parts.parameters):
        if name.startswith("*"):
            rest = [first - place, *rest]
            return name[1:] + "".join(f"[{key!r}]" for key in rest)
        if place == first:
            return name + "".join(f"[{key!r}]" for key in rest)
    raise NotRewritable("forward is given more arguments than it names")


def _guards(captured: Captured, parts: Skeleton, paths: dict[str, str]) -> list[str]:
    """Return checks of what is baked into the code: sizes, dtypes and constants."""
    lines = []
    for name, arg in captured.arguments.items():
        path = paths[name]
        kind = f"{arg.shape} {arg.dtype}"
        lines += [
            f"if {path}.shape != {arg.shape} or {path}.dtype != {arg.dtype}:",
            f'    raise ValueError(f"expected {_quoted(path)} {kind}, found '
            f'{{tuple({path}.shape)}} {{{path}.dtype}}")',
        ]
    for constant in captured.constants:
        path, value = _path(parts, constant.path), constant.value
        if value is not None and not isinstance(value, bool | int | float | str):
            raise NotRewritable(f"the argument {path} is a {type(value).__name__}")
        lines += [
            f"if {path} != {value!r}:",
            "    raise ValueError("
            + repr(f"expected {path} to be {value!r}, found ").join(("", f" + repr({path}))")),
        ]
    return lines


def _quoted(path: str) -> str:
    return path.replace('"', "'")


def _result(captured: Captured, results: Sequence[str]) -> str:
    structure = pytree.tree_unflatten(list(results), captured.out_spec)
    return _spelt(structure)


def _spelt(structure: object) -> str:
    if isinstance(structure, str):
        return structure
    if structure is None:
        return "None"
    if type(structure) is list:
        return f"[{', '.join(map(_spelt, structure))}]"
    if type(structure) is tuple:
        inside = ", ".join(map(_spelt, structure))
        return f"({inside},)" if len(structure) == 1 else inside
    if type(structure) is dict:
        return "{" + ", ".join(f"{k!r}: {_spelt(v)}" for k, v in structure.items()) + "}"
    raise NotRewritable(f"forward gives back a {type(structure).__name__}")


def _words(applied: Sequence[str], kernels: Sequence[FusedKernel]) -> str:
    rules = list(dict.fromkeys(applied))
    parts = []
    if rules:
        parts.append("rules " + ", ".join(rules))
    if kernels:
        kind = kernels[0].language
        parts.append(f"{len(kernels)} generated {kind} kernel{'s' if len(kernels) > 1 else ''}")
    return " with ".join(parts) if parts else "the reference's calls, written straight"


def _header(applied: Sequence[str], kernels: Sequence[FusedKernel], mode: ModuleMode) -> str:
    lines = [f"Written by kopt's rewriter, for modules in {mode} mode."]
    rules = list(dict.fromkeys(applied))
    if rules:
        lines += ["", "Rules applied:"]
        lines += [f"* {name}: {RULES.create(name).summary}" for name in rules]
    if kernels:
        lines += [
            "",
            f"Generated kernels: {', '.join(dict.fromkeys(kernel.name for kernel in kernels))}.",
        ]
    return "\n".join(lines)
