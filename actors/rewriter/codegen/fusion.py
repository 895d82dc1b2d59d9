"""The entry points: kernels for a graph, and the schedules worth trying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import fx

from kopt.actors.rewriter.codegen.cpp.function import cpp_definition
from kopt.actors.rewriter.codegen.cpp.loader import IMPORTS
from kopt.actors.rewriter.codegen.cpp.values import SHORT_COLS
from kopt.actors.rewriter.codegen.gpu.function import triton_definition
from kopt.actors.rewriter.codegen.gpu.product import product_ways, products
from kopt.actors.rewriter.codegen.ir import Load, Unsupported, Value, postorder
from kopt.actors.rewriter.codegen.joined_maps import joined_maps
from kopt.actors.rewriter.codegen.kernel import FusedKernel, SharedDefinitions
from kopt.actors.rewriter.codegen.one_walk import one_walk
from kopt.actors.rewriter.codegen.pieces import in_row_pieces, in_soft_pieces
from kopt.actors.rewriter.codegen.region import Region, regions
from kopt.actors.rewriter.codegen.schedule import Schedule
from kopt.actors.rewriter.codegen.stages import Stage, plan

DeviceKind = Literal["cpu", "cuda"]
CACHED_ROW_ELEMENTS = 1 << 17
"""Up to here (half a MiB of float32) a row is still in a core's cache when it is read again."""
CACHE_BYTES = 32 << 20
"""Data beyond this is taken not to be in a cache when it is read again."""
APPROXIMATED = frozenset(
    {
        "binary_cross_entropy_with_logits",
        "celu",
        "cross_entropy_loss",
        "elu",
        "exp",
        "log",
        "log_sigmoid_forward",
        "log_softmax",
        "logsumexp",
        "mish",
        "safe_softmax",
        "selu",
        "sigmoid",
        "silu",
        "softmax",
        "softplus",
    }
)
"""Operations of ATen's that come to exponentials or logarithms, which a GPU can approximate."""


def fuse(graph: fx.GraphModule, *, device: DeviceKind, schedule: Schedule) -> list[FusedKernel]:
    """Write kernels for the element-wise, reduction and scan parts of an ATen graph.

    Args:
        graph: nodes with fake tensors in `meta["val"]`, free of mutation; it is not changed.
        device: cpu gives C++ with OpenMP, cuda gives Triton.
        schedule: how to write them.

    Returns:
        Kernels, each kind in the graph's order, disjoint, each convex: all of them can be applied.
        Those of the same code share one function: the later ones have an empty definition.
    """
    made: list[FusedKernel] = []
    definitions = SharedDefinitions("fused")
    for region in regions(graph.graph, windows=device == "cuda"):
        name = definitions.next_name
        try:
            kernel = _kernel(region, device=device, name=name, schedule=schedule)
        except Unsupported:
            continue
        made.append(definitions.shared(kernel))
    if device == "cuda":
        taken = {node for kernel in made for node in kernel.nodes}
        own = products(graph, schedule=schedule)
        made += [kernel for kernel in own if not taken & set(kernel.nodes)]
    return made


def _kernel(region: Region, *, device: DeviceKind, name: str, schedule: Schedule) -> FusedKernel:
    limit = CACHED_ROW_ELEMENTS if device == "cpu" else schedule.gpu_persistent
    short = SHORT_COLS if device == "cpu" else 0
    roots = one_walk(region.builder, region.roots, longer_than=limit, up_to=short)
    if device == "cpu":
        roots = joined_maps(region.builder, in_row_pieces(region.builder, roots))
    else:
        roots = in_soft_pieces(region.builder, roots, longer_than=schedule.gpu_persistent)
    stages = plan(roots)
    inputs = _inputs(roots, stages)
    if device == "cpu":
        definition = cpp_definition(
            stages, name=name, inputs=inputs, roots=roots, schedule=schedule
        )
        imports = tuple(f"import {module}" for module in IMPORTS)
    else:
        definition, imports = triton_definition(
            stages, name=name, inputs=inputs, roots=roots, schedule=schedule
        )
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


def _inputs(roots: Sequence[Value], stages: list[Stage]) -> tuple[fx.Node, ...]:
    """Return the tensors that the stages read, in the order in which they meet them."""
    read = {v for stage in stages for v in stage.program.reads}
    loads = [v for v in postorder(roots) if isinstance(v, Load) and v in read]
    return tuple(dict.fromkeys(load.source for load in loads))


def schedules(graph: fx.GraphModule, device: DeviceKind) -> list[Schedule]:
    """Return schedules to try, the best guess first, then its neighbours, one change at a time."""
    if device == "cuda":
        library = Schedule()
        own = [replace(library, gpu_product=way) for way in product_ways(graph)]
        first = own[0] if own else library
        fast = [replace(first, gpu_math="fast")]
        is_soon = _approximates(graph)
        return [
            first,
            *own[1:2],
            *([library] if own else []),
            *own[2:],
            *(fast if is_soon else []),
            replace(first, gpu_block=2048),
            replace(first, gpu_warps=8),
            replace(first, gpu_persistent=4096),
            replace(first, gpu_warps=4),
            *([] if is_soon else fast),
            replace(first, gpu_block=4096, gpu_warps=8),
            replace(first, gpu_block=512, gpu_warps=4),
            replace(first, gpu_persistent=32768, gpu_warps=16),
            replace(first, gpu_persistent=1024),
        ]
    first = Schedule()
    large = replace(first, cpu_streaming=True)
    others = [
        replace(first, cpu_math="fast"),
        replace(first, cpu_lanes=128),
        replace(first, cpu_lanes=32),
        replace(first, cpu_keep=False),
        replace(first, cpu_chunk=4096),
        replace(first, cpu_chunk=65536),
        replace(first, cpu_math="fast", cpu_lanes=128),
    ]
    if _largest_bytes(graph) > CACHE_BYTES:
        return [first, large, *others, replace(large, cpu_math="fast")]
    return [first, *others, large]


def _approximates(graph: fx.GraphModule) -> bool:
    """Whether some operation has an approximation in hardware.

    An exact one takes a GPU about as long as moving the memory of its kernel.
    """
    overloads = (node.target for node in graph.graph.nodes)
    names = {
        each._schema.name.partition("::")[2].strip("_")
        for each in overloads
        if isinstance(each, torch._ops.OpOverload)
    }
    return not names.isdisjoint(APPROXIMATED)


def _largest_bytes(graph: fx.GraphModule) -> int:
    values = [node.meta.get("val") for node in graph.graph.nodes]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return max((tensor.numel() * tensor.element_size() for tensor in tensors), default=0)
