"""Candidates for a reference whose graph cannot be seen: its own forward, run another way.

torch.compile goes on after what it cannot see through, and a CUDA graph asks for no graph of
calls at all. The reference's own calls come last: with them no search ends below eager torch.
"""

from __future__ import annotations

import torch

from kopt.actors.rewriter.graph import NotRewritable
from kopt.actors.rewriter.module_source import Skeleton, assemble, skeleton
from kopt.actors.rewriter.plan import Plan
from kopt.actors.rewriter.reference import ModuleMode, load_reference
from kopt.actors.rewriter.running import compute_method, run_lines, run_methods, words
from kopt.actors.rewriter.source_text import GENERAL_METHOD
from kopt.actors.rewriter.write import Written
from kopt.problem import Problem

WAYS = (
    Plan(algebra=False, compiled=True),
    Plan(algebra=False, graphed=True),
    Plan(algebra=False),
)


def verbatim_candidates(problem: Problem, *, mode: ModuleMode) -> list[Written]:
    """Return the candidates for a GPU, the most promising first; none where there can be none.

    Raises:
        ProblemError: the source does not import, or breaks the contract.
    """
    try:
        parts = skeleton(problem.source, keep_forward=True)
    except NotRewritable:
        return []
    arguments = load_reference(problem, mode=mode).arguments
    tensors = all(isinstance(each, torch.Tensor) for each in arguments)
    plain = len(parts.parameters) >= len(arguments) and not any(
        name.startswith("*") for name in parts.parameters
    )
    if not plain:
        return []
    given = list(parts.parameters[: len(arguments)])
    ways = [way for way in WAYS if tensors or not way.graphed]
    return [_written(parts, given, plan, mode) for plan in ways]


def _written(parts: Skeleton, given: list[str], plan: Plan, mode: ModuleMode) -> Written:
    owner, listed = parts.owner, ", ".join(given)
    call = [f"return {owner}.{GENERAL_METHOD}({listed})"]
    methods: list[list[str]] = []
    body = call
    if plan.compiled or plan.graphed:
        kinds = _kinds(plan)
        methods = [
            compute_method(parts.signature, call),
            *run_methods(owner, parts.signature, given, results="tree", **kinds),
        ]
        body = run_lines(owner, given, **kinds)
    ways = ["the reference's forward as it is", *words(**_kinds(plan))]
    strategy = ", ".join(ways)
    source = assemble(
        parts,
        header=f"Written by kopt's rewriter, for modules in {mode} mode.",
        imports=["import torch"],
        definitions=[plan.marker()],
        doc=f"{strategy[0].upper()}{strategy[1:]}.",
        body=body,
        methods=methods,
    )
    return Written(source=source, language="torch", strategy=strategy)


def _kinds(plan: Plan) -> dict[str, bool]:
    return {"compiled": plan.compiled, "graphed": plan.graphed}
