"""The order in which plans are tried from the root: a search has few candidates for each problem.

The first is the one that the cost model believes in. Among the first six are always the one that
is the baseline's equal in expectation (the graph as it is, by torch.compile) and the one that
makes the reference's own calls, so that no search ends below the faster of the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kopt.actors.rewriter.codegen import Schedule
from kopt.actors.rewriter.plan import LIBRARY_RUNS, Plan, Runs

FORMATS = ("channels_last",)
"""Moves that change the memory format: kernels read rows in order, and would turn it back."""


def root_plans(
    *,
    schedules: list[Schedule],
    applied: tuple[str, ...],
    vendor: tuple[str, ...] = (),
    runs: Runs = LIBRARY_RUNS,
) -> Iterator[Plan]:
    """Yield what is tried from the root, the most promising first.

    Args:
        schedules: of generated kernels, the best guess first; empty where none can be built.
        applied: names of the rules that the full set applied, each once.
        vendor: moves that have something to change.
        runs: ways to run the graph.
    """
    best = schedules[0] if schedules else None
    if runs.compiler or runs.graph:
        yield from _leading(schedules, applied=applied, vendor=vendor, runs=runs)
    if best is not None:
        yield Plan(schedule=best)
    if applied:
        yield Plan()
        if best is not None:
            yield Plan(algebra=False, schedule=best)
    for name in vendor:
        yield Plan(vendor=(name,), schedule=None if name in FORMATS else best)
    for schedule in schedules[1:]:
        yield Plan(schedule=schedule)
    for name in applied:
        yield Plan(without=(name,), schedule=best)
    if best is not None:
        for name in applied:
            yield Plan(without=(name,))
    if not applied:  # the reference's own calls: what is left where nothing is to be gained
        yield Plan()


def _leading(
    schedules: list[Schedule], *, applied: tuple[str, ...], vendor: tuple[str, ...], runs: Runs
) -> Iterator[Plan]:
    """Yield the first plans on a device with a compiler and graphs; some may come again later."""
    best = schedules[0] if schedules else None
    formats = tuple(name for name in vendor if name in FORMATS)
    own = [Plan(schedule=best)] if best is not None else []
    if best is not None and best.gpu_product != "library":
        # The other way to multiply, and the library.
        own += [Plan(schedule=schedule) for schedule in schedules[1:3]]
    by_compiler: list[Plan] = []
    if runs.compiler:
        by_compiler = [Plan(compiled=True)]
        if formats:
            by_compiler.insert(0, Plan(compiled=True, vendor=formats))
    if runs.graph and runs.many_launches:
        yield from (replace(plan, graphed=True) for plan in by_compiler)
        yield Plan(graphed=True, schedule=best)
        yield from (*by_compiler[-1:], *own[:1])
    elif runs.convolutions:
        yield from (*by_compiler, *own[:1])
    else:
        yield from (*own, *by_compiler)
    # What neither a rule nor a generator touched.
    yield Plan(algebra=not applied)
    if formats:
        yield Plan(vendor=formats)
        if runs.graph and runs.many_launches:
            yield Plan(graphed=True, vendor=formats)
    if applied and runs.compiler:
        yield Plan(compiled=True, algebra=False)
