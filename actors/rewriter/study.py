"""A problem read once: its graph, its rewritten forms, and the sources written from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from torch import fx

from kopt.actors.rewriter.capture import Captured, capture
from kopt.actors.rewriter.codegen import Schedule, fuse, schedules
from kopt.actors.rewriter.graph import on_device
from kopt.actors.rewriter.module_source import Skeleton, skeleton
from kopt.actors.rewriter.plan import (
    Plan,
    neighbour_plans,
    plan_of,
    root_plans,
    safer_plans,
    without_marker,
)
from kopt.actors.rewriter.reference import ModuleMode
from kopt.actors.rewriter.rewrite import rewritten
from kopt.actors.rewriter.write import Written, write_candidate
from kopt.candidate import Language
from kopt.expansion import Mode
from kopt.problem import Problem

DeviceKind = Literal["cpu", "cuda"]
KERNEL_LANGUAGE: dict[DeviceKind, Language] = {"cpu": "cpp", "cuda": "triton"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A graph and the rules that led to it."""

    graph: fx.GraphModule
    applied: tuple[str, ...]
    """In order; a rule may stand there several times."""


class Study:
    """What is known of one problem on one device. Everything in it follows from the problem."""

    def __init__(
        self,
        problem: Problem,
        *,
        mode: ModuleMode,
        device: DeviceKind,
        languages: Collection[Language],
    ) -> None:
        """Capture the problem.

        Raises:
            ProblemError: the source does not import, or breaks the contract.
            NotRewritable: its graph cannot be seen.
        """
        self._captured: Captured = capture(problem, mode=mode)
        self._parts: Skeleton = skeleton(problem.source)
        self._mode = mode
        self._device: DeviceKind = device
        self._kernels = KERNEL_LANGUAGE[device] in languages
        self._plain = Form(graph=self._captured.graph, applied=())
        self._forms: dict[tuple[str, ...], Form] = {}
        self._written: dict[Plan, Written] = {}
        self._ways: list[Schedule] | None = None

    def candidates(self, parent_source: str | None, *, mode: Mode, limit: int) -> list[Written]:
        """Return the first candidates of a node, no two with equal code.

        Args:
            parent_source: of the node; None for the root.
            mode: of the expansion.
            limit: how many at most.
        """
        seen = set() if parent_source is None else {without_marker(parent_source)}
        found: list[Written] = []
        for plan in self._plans(parent_source, mode=mode):
            if len(found) >= limit:
                break
            written = self.written(plan)
            text = without_marker(written.source)
            if text not in seen:
                seen.add(text)
                found.append(written)
        return found

    def written(self, plan: Plan) -> Written:
        """Return the source of a plan."""
        if plan not in self._written:
            form = self.form(plan)
            graph, kernels = form.graph, []
            if plan.schedule is not None:
                graph = on_device(graph, self._device)
                kernels = fuse(graph, device=self._device, schedule=plan.schedule)
                if not kernels:  # nothing to schedule: the same as without
                    return self.written(replace(plan, schedule=None))
            self._written[plan] = write_candidate(
                self._captured,
                self._parts,
                graph=graph,
                applied=form.applied,
                plan=plan,
                mode=self._mode,
                kernels=kernels,
            )
        return self._written[plan]

    def form(self, plan: Plan) -> Form:
        """Return the graph of a plan."""
        if not plan.algebra:
            return self._plain
        if plan.without not in self._forms:
            graph, applied = rewritten(
                self._plain.graph,
                mode=self._captured.mode,
                device=self._device,
                without=plan.without,
            )
            self._forms[plan.without] = Form(graph=graph, applied=tuple(applied))
        return self._forms[plan.without]

    def _plans(self, parent_source: str | None, *, mode: Mode) -> Iterator[Plan]:
        applied = tuple(dict.fromkeys(self.form(Plan()).applied))
        ways = self._schedules()
        parent = None if parent_source is None else plan_of(parent_source)
        if parent is None:
            return root_plans(schedules=ways, applied=applied)
        if mode == "debug":
            return safer_plans(parent, schedules=ways, applied=applied)
        tried = set(root_plans(schedules=ways, applied=applied))
        plans = neighbour_plans(parent, schedules=ways, applied=applied)
        return (plan for plan in plans if plan not in tried)

    def _schedules(self) -> list[Schedule]:
        if not self._kernels:
            return []
        if self._ways is None:
            graph = on_device(self.form(Plan()).graph, self._device)
            self._ways = schedules(graph, self._device)
        return self._ways
