"""The entry points: kernels for a graph, and the schedules worth trying."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from torch import fx

from kopt.actors.rewriter.codegen.cpp.function import cpp_definition
from kopt.actors.rewriter.codegen.cpp.loader import IMPORTS
from kopt.actors.rewriter.codegen.gpu.function import triton_definition
from kopt.actors.rewriter.codegen.ir import Load, Unsupported, postorder
from kopt.actors.rewriter.codegen.kernel import FusedKernel
from kopt.actors.rewriter.codegen.region import Region, regions
from kopt.actors.rewriter.codegen.schedule import Schedule
from kopt.actors.rewriter.codegen.stages import plan

DeviceKind = Literal["cpu", "cuda"]
CACHE_BYTES = 32 << 20
"""Data beyond this is taken not to be in a cache when it is read again."""


def fuse(graph: fx.GraphModule, *, device: DeviceKind, schedule: Schedule) -> list[FusedKernel]:
    """Write kernels for the element-wise, reduction and scan parts of an ATen graph.

    Args:
        graph: nodes with fake tensors in `meta["val"]`, free of mutation; it is not changed.
        device: cpu gives C++ with OpenMP, cuda gives Triton.
        schedule: how to write them.

    Returns:
        Kernels in the graph's order, disjoint, each convex: all of them can be applied.
    """
    made: list[FusedKernel] = []
    for region in regions(graph.graph, device=device):
        kernel = _kernel(region, device=device, number=len(made), schedule=schedule)
        if kernel is not None:
            made.append(kernel)
    return made


def _kernel(
    region: Region, *, device: DeviceKind, number: int, schedule: Schedule
) -> FusedKernel | None:
    loads = [value for value in postorder(region.roots) if isinstance(value, Load)]
    inputs = tuple(dict.fromkeys(value.source for value in loads))
    name = f"fused_{number}"
    try:
        stages = plan(region.roots)
        if device == "cpu":
            definition = cpp_definition(
                stages, name=name, inputs=inputs, roots=region.roots, schedule=schedule
            )
            imports = tuple(f"import {module}" for module in IMPORTS)
        else:
            definition, imports = triton_definition(
                stages, name=name, inputs=inputs, roots=region.roots, schedule=schedule
            )
    except Unsupported:
        return None
    results = ", ".join(f"{{{node.name}}}" for node in region.outputs)
    arguments = ", ".join(f"{{{node.name}}}" for node in inputs)
    return FusedKernel(
        nodes=region.nodes,
        inputs=inputs,
        outputs=region.outputs,
        name=name,
        definition=definition,
        call=f"{results} = {name}({arguments})",
        imports=imports,
        language="cpp" if device == "cpu" else "triton",
    )


def schedules(graph: fx.GraphModule, device: DeviceKind) -> list[Schedule]:
    """Return schedules to try, the best guess first, then its neighbours one change at a time."""
    if device == "cuda":
        first = Schedule()
        return [first]
    size = max(
        (
            node.meta["val"].numel()
            for node in graph.graph.nodes
            if "val" in node.meta and hasattr(node.meta["val"], "numel")
        ),
        default=0,
    )
    first = Schedule(cpu_streaming=size * 4 > CACHE_BYTES)
    return [first, replace(first, cpu_streaming=not first.cpu_streaming)]
