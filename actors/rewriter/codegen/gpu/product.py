"""Matrix products of a graph that three tf32 products do sooner than the library's float32 one."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.codegen.gpu.function import IMPORTS
from kopt.actors.rewriter.codegen.gpu.product_source import (
    Operand,
    ProductTile,
    direct_source,
    is_turned,
    padded,
    product_grid,
    product_source,
    split_grid,
    split_source,
)
from kopt.actors.rewriter.codegen.kernel import FusedKernel, SharedDefinitions
from kopt.actors.rewriter.codegen.schedule import ProductWay, Schedule

LIBRARY_FLOPS = 5.1e13
"""What cuBLAS reaches in float32 on an H200: 2.69 ms for 1024 × 8192 × 8192."""
TENSOR_FLOPS = 3.0e14
"""Of tf32 products by Triton, counted before they are made three (an estimate)."""
BYTES = 4.0e12
"""Of memory, a second."""
LEAST_GAIN = 0.8
"""Part of the library's time that ours must stay below."""
LEAST_SECONDS = 5e-5
"""Shorter products are all launches."""
LEAST_TILES = 100
"""Programs that keep most of a device's processors busy."""

TILES: dict[ProductWay, ProductTile] = {
    "large": ProductTile(rows=128, cols=128, depth=32, warps=8, stages=3),
    "small": ProductTile(rows=64, cols=128, depth=32, warps=4, stages=2),
    "direct": ProductTile(rows=128, cols=128, depth=32, warps=8, stages=3, direct=True),
    "direct_small": ProductTile(rows=64, cols=128, depth=32, warps=4, stages=2, direct=True),
}
"""By the schedule's name. small: two programs share a processor, one adds while one multiplies."""

aten = torch.ops.aten


def products(graph: fx.GraphModule, *, schedule: Schedule) -> list[FusedKernel]:
    """Write the products of a graph that are worth it; each replaces one call.

    Args:
        graph: in normal form, fake tensors in `meta["val"]`.
        schedule: `gpu_product` chooses the tile; `library` leaves all calls as they are.
    """
    if schedule.gpu_product == "library":
        return []
    tile = TILES[schedule.gpu_product]
    made: list[FusedKernel] = []
    definitions = SharedDefinitions("product")
    for node in graph.graph.nodes:
        read = _read(node)
        if read is None or not _pays(*read[:2], tile=tile):
            continue
        kernel = _kernel(node, *read, name=definitions.next_name, tile=tile)
        made.append(definitions.shared(kernel))
    return made


def product_ways(graph: fx.GraphModule) -> list[ProductWay]:
    """Return the tiles by which some product of a graph is worth it, the best guess first."""
    read = [found[:2] for node in graph.graph.nodes if (found := _read(node)) is not None]
    ways: list[ProductWay] = ["large", "direct", "small", "direct_small"]
    paying = {way: sum(_pays(*each, tile=TILES[way]) for each in read) for way in ways}
    # Where cutting the weights first does not pay, it is all about cutting them on the way.
    return sorted((way for way in ways if paying[way]), key=lambda way: -paying[way])


Read = tuple[Operand, Operand, tuple[fx.Node, ...], tuple[fx.Node, ...]]
"""Left and right operand, the tensors they lie in (and the bias), views that they are read by."""


def _read(node: fx.Node) -> Read | None:
    """Read a call as left · rightᵀ + bias in float32; None where it is none."""
    if node.op != "call_function":
        return None
    if node.target is aten.linear.default:
        x, weight, *rest = node.args
        bias = rest[0] if rest else node.kwargs.get("bias")
        if not _are_float32(x, weight, *([] if bias is None else [bias])):
            return None
        assert isinstance(x, fx.Node)
        assert isinstance(weight, fx.Node)
        sizes, other = _shape(x), _shape(weight)
        if len(sizes) < 2 or len(other) != 2:
            return None
        left = _operand(x, name="x", batch=1, rows=prod(sizes[:-1]), depth=sizes[-1], turned=False)
        right = _operand(weight, name="w", batch=1, rows=other[0], depth=other[1], turned=False)
        sources = [left[1], right[1]] + ([bias] if isinstance(bias, fx.Node) else [])
        return left[0], right[0], tuple(sources), (*left[2], *right[2])
    if node.target in (aten.bmm.default, aten.matmul.default):
        x, y = node.args[:2]
        if not _are_float32(x, y):
            return None
        assert isinstance(x, fx.Node)
        assert isinstance(y, fx.Node)
        sizes, other = _shape(x), _shape(y)
        if len(sizes) < 3 or sizes[:-2] != other[:-2]:
            return None
        batch = prod(sizes[:-2])
        left = _operand(x, name="x", batch=batch, rows=sizes[-2], depth=sizes[-1], turned=False)
        right = _operand(y, name="w", batch=batch, rows=other[-1], depth=other[-2], turned=True)
        return left[0], right[0], (left[1], right[1]), (*left[2], *right[2])
    return None


def _operand(
    node: fx.Node, *, name: str, batch: int, rows: int, depth: int, turned: bool
) -> tuple[Operand, fx.Node, tuple[fx.Node, ...]]:
    """Return an operand, the tensor it lies in, and the transposition it is read through, if any.

    Args:
        node: (…, rows, depth), or (…, depth, rows) where it is `turned`.
        name: of the tensor in the launcher.
        batch: matrices.
        rows: of each.
        depth: length of the summed index.
        turned: whether the summed index is not the last.
    """
    rank = len(_shape(node))
    views: tuple[fx.Node, ...] = ()
    if node.target is aten.permute.default and isinstance(node.args[0], fx.Node):
        listed: Any = node.args[1]
        dims = [int(dim) % rank for dim in listed]
        if dims == [*range(rank - 2), rank - 1, rank - 2] and (batch > 1 or rank == 2):
            views, node, turned = (node,), node.args[0], not turned
    strides = (rows * depth, 1, rows) if turned else (rows * depth, depth, 1)
    operand = Operand(name=name, batch=batch, rows=rows, depth=depth, strides=strides)
    return operand, node, views


def _pays(left: Operand, right: Operand, *, tile: ProductTile) -> bool:
    batch, rows, cols, depth = left.batch, left.rows, right.rows, left.depth
    if min(rows, cols) < 64 or depth < 16 or batch > 65535:
        return False
    tiles = batch * -(-rows // tile.rows) * -(-cols // tile.cols)
    flops = 2.0 * batch * rows * cols * depth
    read, written = 4.0 * batch * (rows + cols) * depth, 4.0 * batch * rows * cols
    library = max(flops / LIBRARY_FLOPS, (read + written) / BYTES)
    ours = product_seconds(left, right, direct=tile.direct)
    return tiles >= LEAST_TILES and library >= LEAST_SECONDS and ours <= LEAST_GAIN * library


def product_seconds(left: Operand, right: Operand, *, direct: bool) -> float:
    """Return the estimated time of a product and of the cuts before it."""
    batch, rows, cols, depth = left.batch, left.rows, right.rows, left.depth
    flops = 6.0 * batch * rows * cols * depth
    left_bytes, right_bytes = 4.0 * batch * rows * depth, 4.0 * batch * cols * depth
    whole = max(left_bytes, right_bytes) if direct else 0.0
    cut = left_bytes + right_bytes - whole
    # Cutting reads once and writes twice; the product reads both halves.
    moved = 2 * cut + whole + 4.0 * batch * rows * cols
    return 3 * cut / BYTES + max(flops / TENSOR_FLOPS, moved / BYTES) + 1e-5


def _kernel(
    node: fx.Node,
    left: Operand,
    right: Operand,
    sources: tuple[fx.Node, ...],
    views: tuple[fx.Node, ...],
    *,
    name: str,
    tile: ProductTile,
) -> FusedKernel:
    has_bias = len(sources) == 3
    given = ["x", "w", "bias"][: len(sources)]
    pitch, shape = padded(left.depth, tile), _shape(node)
    kernels = [f"_{name}_kernel{number}" for number in range(3)]
    turned = is_turned(left, right)
    cut = [operand for operand in (left, right) if not tile.direct or turned is (operand is left)]
    text = "".join(
        split_source(kernel, operand, tile) for kernel, operand in zip(kernels, cut, strict=False)
    )
    write = direct_source if tile.direct else product_source
    text += write(kernels[2], left, right, tile=tile, has_bias=has_bias)
    body = [f"def {name}({', '.join(given)}):"]
    for tensor, source in zip(given, sources, strict=True):
        held = _shape(source)
        body += [
            f"    if {tensor}.shape != {held} or {tensor}.dtype != torch.float32:",
            f'        raise ValueError(f"{name}: expected torch.float32 of shape {held}, '
            f'found {{{tensor}.dtype}} of shape {{tuple({tensor}.shape)}}")',
            f"    {tensor} = {tensor}.contiguous()",
        ]
    for number, operand in enumerate(cut):
        size = operand.batch * operand.rows * pitch
        high, low = f"{operand.name}_high", f"{operand.name}_low"
        body += [
            f"    {high} = torch.empty({size}, dtype=torch.float32, device=x.device)",
            f"    {low} = torch.empty_like({high})",
            f"    {kernels[number]}[({split_grid(operand, tile)})]"
            f"({operand.name}, {high}, {low}, num_warps=4)",
        ]
    # The cut operand comes first, the one that is read as it is after it.
    tensors = [f"{operand.name}_high, {operand.name}_low" for operand in cut]
    tensors += [operand.name for operand in (left, right) if operand not in cut]
    bias = "bias, " if has_bias else ""
    body += [
        f"    out = torch.empty({shape}, dtype=torch.float32, device=x.device)",
        f"    {kernels[2]}[({product_grid(left, right, tile)})](",
        f"        {', '.join(tensors)}, {bias}out, "
        f"num_warps={tile.warps}, num_stages={tile.stages}",
        "    )",
        "    return out",
    ]
    fields = ", ".join(f"{{{source.name}}}" for source in sources)
    own = tuple(view for view in dict.fromkeys(views) if set(view.users) == {node})
    return FusedKernel(
        nodes=(*own, node),
        inputs=sources,
        outputs=(node,),
        name=name,
        definition=text + "\n".join(body) + "\n",
        call=f"{{{node.name}}} = {name}({fields})",
        imports=IMPORTS,
        language="triton",
        seconds=product_seconds(left, right, direct=tile.direct),
    )


def _shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(int(size) for size in node.meta["val"].shape)


def _are_float32(*nodes: object) -> bool:
    return all(
        isinstance(node, fx.Node)
        and isinstance(node.meta.get("val"), torch.Tensor)
        and node.meta["val"].dtype == torch.float32
        and node.meta["val"].numel() > 0
        for node in nodes
    )
