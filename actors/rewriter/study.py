"""A problem read once: its graph, its rewritten forms, and the sources written from them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import fx

from kopt.actors.rewriter.capture import Captured, capture
from kopt.actors.rewriter.codegen import FusedKernel, Schedule, fuse, schedules
from kopt.actors.rewriter.cost import (
    CONVOLUTIONS,
    PRODUCTS,
    RATES,
    TRANSPOSED,
    VIEWS,
    is_launched,
    launches,
    node_seconds,
    pieces,
)
from kopt.actors.rewriter.graph import NotRewritable, on_device
from kopt.actors.rewriter.module_source import Skeleton, skeleton
from kopt.actors.rewriter.moves import ordered
from kopt.actors.rewriter.outline import Outline, outline
from kopt.actors.rewriter.plan import (
    Fold,
    Plan,
    Runs,
    neighbour_plans,
    plan_of,
    safer_plans,
    without_marker,
)
from kopt.actors.rewriter.proof import Prover
from kopt.actors.rewriter.reference import ModuleMode
from kopt.actors.rewriter.rewrite import rewritten
from kopt.actors.rewriter.root_order import root_plans
from kopt.actors.rewriter.running_stats import Movement, opened
from kopt.actors.rewriter.vendor import vendor_moves, with_vendor_moves
from kopt.actors.rewriter.write import Written, write_candidate
from kopt.candidate import Language
from kopt.expansion import Mode
from kopt.problem import Problem

log = logging.getLogger(__name__)

DeviceKind = Literal["cpu", "cuda"]
HOST_S = 8e-6
"""Time that the host takes for a call of torch; a device that needs less for it waits."""
MOST_COMPILED = 400
"""Pieces that torch.compile takes within a candidate's time limits (ResNet-101: 343 in 19 s on an
H200's host; DenseNet-121, most of them joined tensors: about 900 in more than 40 s)."""
KERNEL_LANGUAGE: dict[DeviceKind, Language] = {"cpu": "cpp", "cuda": "triton"}


Parts = tuple[fx.GraphModule, list[FusedKernel], tuple[Movement, ...]]
"""A graph, kernels in place of some of its calls, and buffers that its last results move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A graph and the rules that led to it."""

    graph: fx.GraphModule
    applied: tuple[str, ...]
    """In order; a rule may stand there several times."""
    refused: str = ""
    """Why rules that pay are not applied; empty where all are."""


class Study:
    """What is known of one problem on one device. Everything in it follows from the problem."""

    def __init__(
        self,
        problem: Problem,
        *,
        mode: ModuleMode,
        device: DeviceKind,
        languages: Collection[Language],
        fold: Fold = "call",
    ) -> None:
        """Capture the problem.

        Raises:
            ProblemError: the source does not import, or breaks the contract.
            NotRewritable: its graph cannot be seen, or not be written down.
        """
        self._captured: Captured = capture(problem, mode=mode)
        self._parts: Skeleton = skeleton(problem.source)
        self._mode = mode
        self._fold: Fold = fold
        self._device: DeviceKind = device
        self._kernels = KERNEL_LANGUAGE[device] in languages
        self._plain = Form(graph=self._captured.graph, applied=())
        self._prover = Prover(self._captured, mode=mode)
        self._refuted: set[str] = set()
        self._degenerate: str | None = None
        self._forms: dict[tuple[str, ...], Form] = {}
        self._made: dict[Plan, Parts] = {}
        self._written: dict[Plan, Written] = {}
        self._ways: list[Schedule] | None = None
        self.written(Plan(algebra=False))  # what cannot be written as it is has no candidates

    def candidates(
        self,
        parent_source: str | None,
        *,
        mode: Mode,
        limit: int,
        findings: Sequence[str] = (),
    ) -> list[Written]:
        """Return the first candidates of a node, no two with equal code.

        Args:
            parent_source: of the node; None for the root.
            mode: of the expansion.
            limit: how many at most.
            findings: names of the tools that found something in the node's profile, the most
                severe first.
        """
        seen = set() if parent_source is None else {without_marker(parent_source)}
        found: list[Written] = []
        for each in self._plans(parent_source, mode=mode, findings=findings):
            # A graph would go on with weights folded before; to a compiler the check is opaque.
            cached = self._fold == "cached" and not (each.graphed or each.compiled)
            plan = replace(each, fold="cached" if cached else "call")
            if len(found) >= limit:
                break
            try:
                written = self.written(plan)
            except NotRewritable as error:
                log.warning("%s: left out %s: %s", self._captured.problem.name, plan, error.reason)
                continue
            text = without_marker(written.source)
            if text not in seen:
                seen.add(text)
                found.append(written)
        return found

    def outline(self, plan: Plan) -> Outline:
        """Return what a plan comes to."""
        graph, kernels, _ = self._made_of(plan)
        return outline(graph, kernels, device=self._device)

    def written(self, plan: Plan) -> Written:
        """Return the source of a plan.

        Raises:
            NotRewritable: something of it has no spelling.
        """
        if plan not in self._written:
            form = self.form(plan)
            graph, kernels, movements = self._made_of(plan)
            if plan.schedule is not None and not kernels:  # the same as without
                return self.written(replace(plan, schedule=None))
            self._written[plan] = write_candidate(
                self._captured,
                self._parts,
                graph=graph,
                applied=form.applied,
                plan=plan,
                mode=self._mode,
                kernels=kernels,
                movements=movements,
                remark=self._remark(),
            )
        return self._written[plan]

    def _made_of(self, plan: Plan) -> Parts:
        """Return the graph of a plan, its kernels, and the buffers that its last results move."""
        key = replace(plan, compiled=False, graphed=False, fold="call")
        if key not in self._made:
            graph = with_vendor_moves(self.form(plan).graph, plan.vendor, mode=self._captured.mode)
            if plan.schedule is None:
                self._made[key] = (graph, [], ())
            else:
                self._made[key] = self._generated(graph, plan.schedule)
        return self._made[key]

    def _generated(self, plain: fx.GraphModule, schedule: Schedule) -> Parts:
        """Return the graph on its device, kernels for it, and buffers that its last results move.

        Norms that keep statistics are opened where kernels take in all that they consist of.
        """
        open_form = opened(plain, self._captured.mode)
        if open_form is not None:
            places = {n: place for place, n in enumerate(open_form.graph.graph.nodes)}
            needed = {places[node] for node in open_form.statistics}
            graph = on_device(open_form.graph, self._device)
            kernels = fuse(graph, device=self._device, schedule=schedule)
            nodes = list(graph.graph.nodes)
            taken = {node for kernel in kernels for node in kernel.nodes}
            left = [nodes[place] for place in needed if nodes[place] not in taken]
            if kernels and all(node.target in VIEWS for node in left):
                return graph, kernels, open_form.movements
        graph = on_device(plain, self._device)
        return graph, fuse(graph, device=self._device, schedule=schedule), ()

    def _remark(self) -> str:
        """Return what is degenerate about the task, in words; empty where nothing is."""
        if self._degenerate is None:
            found = self._prover.degenerate()
            self._degenerate = f"a degenerate task: {found}" if found else ""
        return self._degenerate

    def form(self, plan: Plan) -> Form:
        """Return the graph of a plan."""
        if not plan.algebra:
            return self._plain
        if plan.without not in self._forms:
            self._forms[plan.without] = self._proved({*plan.without})
        return self._forms[plan.without]

    def _proved(self, without: set[str]) -> Form:
        """Return the graph that the rules lead to, but for those that do not stand the proof."""
        while True:
            graph, steps = rewritten(
                self._plain.graph,
                mode=self._captured.mode,
                device=self._device,
                without=without | self._refuted,
            )
            refuted = self._prover.refute(steps)
            if refuted is None:
                return Form(graph=graph, applied=tuple(step.rule for step in steps))
            log.error("%s: %s", self._captured.problem.name, refuted.reason)
            if refuted.rule is None:
                return replace(self._plain, refused=refuted.reason)
            self._refuted.add(refuted.rule)

    def _plans(
        self, parent_source: str | None, *, mode: Mode, findings: Sequence[str]
    ) -> Iterable[Plan]:
        applied = tuple(dict.fromkeys(self.form(Plan()).applied))
        ways = self._schedules()
        vendor = vendor_moves(self.form(Plan()).graph, device=self._device)
        runs = self._ways_to_run()
        parent = None if parent_source is None else plan_of(parent_source)
        # Lists are of plans that fold at every call: the fold is the study's.
        parent = None if parent is None else replace(parent, fold="call")
        if parent is None:
            return root_plans(schedules=ways, applied=applied, vendor=vendor, runs=runs)
        if mode == "debug":
            return safer_plans(parent, schedules=ways, applied=applied)
        tried = set(root_plans(schedules=ways, applied=applied, vendor=vendor, runs=runs))
        plans = neighbour_plans(parent, schedules=ways, applied=applied, vendor=vendor, runs=runs)
        return ordered((plan for plan in plans if plan not in tried), parent, tools=findings)

    def _ways_to_run(self) -> Runs:
        """Return how the rewritten graph may run on this device, and what asks for it."""
        if self._device == "cpu":
            return Runs()
        calls_made = [n for n in self.form(Plan()).graph.graph.nodes if is_launched(n)]
        launched, rates = sum(map(launches, calls_made)), RATES["cuda"]
        busy_s = sum(node_seconds(node, rates) - rates.launch_s for node in calls_made)
        ways = self._schedules()
        left = calls_made
        if ways:  # what kernels of ours take is no library's
            graph, kernels, _ = self._made_of(Plan(schedule=ways[0]))
            inside = {node for kernel in kernels for node in kernel.nodes}
            left = [n for n in graph.graph.nodes if is_launched(n) and n not in inside]
        conv_s, product_s = (
            sum(node_seconds(n, rates) for n in left if n.target in targets)
            for targets in (CONVOLUTIONS | TRANSPOSED, PRODUCTS)
        )
        plain = all(len(arg.path) == 1 for arg in self._captured.arguments.values())
        return Runs(
            compiler=sum(map(pieces, calls_made)) <= MOST_COMPILED,
            # Constants made inside forward come from the host, where no graph can wait for them.
            graph=plain and not (self._captured.constants or self._captured.literals),
            many_launches=busy_s < launched * HOST_S,
            convolutions=conv_s > product_s,
        )

    def _schedules(self) -> list[Schedule]:
        if not self._kernels:
            return []
        if self._ways is None:
            graph = on_device(self.form(Plan()).graph, self._device)
            self._ways = schedules(graph, self._device)
        return self._ways
