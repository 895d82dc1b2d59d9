"""One candidate's source from a graph: guards, calls, kernels, and a header that says what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch import fx
from torch.utils import _pytree as pytree

from kopt.actors.rewriter.capture import Captured
from kopt.actors.rewriter.codegen import FusedKernel, cpp_loader_source
from kopt.actors.rewriter.emit import Body, emit_body
from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.module_source import Skeleton, assemble
from kopt.actors.rewriter.plan import Plan, language_of
from kopt.actors.rewriter.reference import ModuleMode
from kopt.actors.rewriter.rules import RULES
from kopt.actors.rewriter.running import (
    Results,
    compute_method,
    run_lines,
    run_methods,
    words,
)
from kopt.actors.rewriter.running_stats import Movement
from kopt.actors.rewriter.source_text import GENERAL_METHOD
from kopt.actors.rewriter.vendor import WORDS
from kopt.candidate import Language

FOLD_METHOD = "fold_weights"
PRODUCT = "product_"
"""What the names of generated products begin with."""


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
    movements: Sequence[Movement] = (),
    remark: str = "",
) -> Written:
    """Write the file.

    Args:
        captured: the reference.
        parts: of its source.
        graph: what to compute.
        applied: rules that led to the graph.
        plan: of the candidate.
        mode: how modules run.
        kernels: generated, in place of calls of the graph.
        movements: buffers that the graph's last results move, one each.
        remark: what whoever reads a speed-up of it should know; empty for nothing.

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
        owner=owner,
        fold_first=plan.fold == "cached",
    )
    guards = _guards(captured, parts, paths)
    lines = [f"{_member(owner, e.attribute)}.add_({e.amount})" for e in captured.effects]
    if body.folding:
        names = ", ".join(body.folded)
        comma = "," if len(body.folded) == 1 else ""
        lines.append(f"{names}{comma} = {owner}.{FOLD_METHOD}()")
    lines += body.lines
    given = len(body.results) - len(movements)
    for moved, result in zip(movements, body.results[given:], strict=True):
        keep, share = 1.0 - moved.momentum, moved.momentum
        lines.append(f"{leaves[moved.buffer]}.mul_({keep!r}).add_({result}, alpha={share!r})")
    lines.append(f"return {_result(captured, body.results[:given])}")
    languages = {kernel.language for kernel in kernels}
    definitions = [kernel.definition for kernel in kernels if kernel.definition]
    if "cpp" in languages:
        definitions.insert(0, cpp_loader_source())
    methods = [_fold_method(owner, body)] if body.folding else []
    if plan.compiled or plan.graphed:
        tensors, kinds = list(paths.values()), {"compiled": plan.compiled, "graphed": plan.graphed}
        methods.append(compute_method(parts.signature, lines))
        methods += run_methods(
            owner, parts.signature, tensors, results=results_of(captured), **kinds
        )
        lines = run_lines(owner, tensors, **kinds)
    lines = [*guards, *lines]
    if "F" in parts.bound or "F" in parts.parameters:
        lines, *methods = (
            [re.sub(r"\bF\.(?=\w+\()", "torch.nn.functional.", line) for line in part]
            for part in (lines, *methods)
        )
    imports = ["import torch"]
    if any(re.search(r"\bF\.\w+\(", line) for part in (lines, *methods) for line in part):
        imports.append("import torch.nn.functional as F")
    imports += [line for kernel in kernels for line in kernel.imports]
    ways = [WORDS[name] for name in plan.vendor]
    ways += words(compiled=plan.compiled, graphed=plan.graphed)
    strategy = ", ".join([_words(applied, kernels), *ways]) + (f" ({remark})" if remark else "")
    source = assemble(
        parts,
        header=_header(
            applied, kernels, mode, remarks=(", ".join(ways), _fold_remark(body), remark)
        ),
        imports=list(dict.fromkeys(imports)),
        definitions=[plan.marker(), *definitions],
        doc=f"{strategy[0].upper()}{strategy[1:]}.",
        body=lines,
        methods=methods,
    )
    return Written(source=source, language=language_of(languages), strategy=strategy)


def results_of(captured: Captured) -> Results:
    """Return of what kind forward's result is."""
    structure = pytree.tree_unflatten([""] * captured.out_spec.num_leaves, captured.out_spec)
    return "tensor" if structure == "" else "tree"


def _fold_method(owner: str, body: Body) -> list[str]:
    """Return a method that computes what depends on weights alone, once while they last."""
    held, folded = _tuple(body.weights), _tuple(body.folded)
    return [
        f"def {FOLD_METHOD}({owner}):",
        '    """Return what depends on weights alone; computed anew where one has changed."""',
        f"    held = {held}",
        "    state = [(each.data_ptr(), each._version, each.device) for each in held]",
        f'    if getattr({owner}, "_fold_state", None) != state:',
        "        with torch.no_grad():",
        *(f"            {line}" for line in body.folding),
        f"        {owner}._fold_state, {owner}._folded = state, {folded}",
        f"    return {owner}._folded",
    ]


def _tuple(expressions: Sequence[str]) -> str:
    inside = ", ".join(expressions)
    return f"({inside},)" if len(expressions) == 1 else f"({inside})"


def _fold_remark(body: Body) -> str:
    """Return when weights are folded, where any are."""
    if body.folding:
        return "weights are folded once, and again where one has changed"
    return "weights are folded at every call" if body.folds else ""


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
        lines.append(f"if {path}.shape != {arg.shape} or {path}.dtype != {arg.dtype}:")
        if parts.is_general:
            given = ", ".join(parts.parameters)
            lines.append(f"    return {parts.owner}.{GENERAL_METHOD}({given})")
            continue
        lines.append(
            f'    raise ValueError(f"expected {_quoted(path)} {kind}, found '
            f'{{tuple({path}.shape)}} {{{path}.dtype}}")'
        )
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
    own = [kernel for kernel in kernels if kernel.name.startswith(PRODUCT)]
    fused = len(kernels) - len(own)
    if fused:
        kind = kernels[0].language
        parts.append(f"{fused} generated {kind} kernel{'s' if fused > 1 else ''}")
    if own:
        some = "a float32 product" if len(own) == 1 else f"{len(own)} float32 products"
        parts.append(f"{some} by three tf32 products{'' if len(own) == 1 else ' each'}")
    if rules and own and fused:
        parts = [parts[0], " and ".join(parts[1:])]
    return " with ".join(parts) if parts else "the reference's calls, written straight"


def _header(
    applied: Sequence[str],
    kernels: Sequence[FusedKernel],
    mode: ModuleMode,
    *,
    remarks: Sequence[str],
) -> str:
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
    for remark in filter(None, remarks):
        lines += ["", f"{remark[0].upper()}{remark[1:]}."]
    return "\n".join(lines)
