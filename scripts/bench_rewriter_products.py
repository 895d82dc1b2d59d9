"""Matrix products by three tf32 products against the library's float32 one, on this GPU.

Usage: python scripts/bench_rewriter_products.py [shapes=1024x8192x8192,…] [repeats=20] [--json]

A shape is rows x columns x depth, with `batch*` in front for several. Each is timed by every tile
of the rewriter (kopt.actors.rewriter.codegen.gpu.product.TILES), cuts included, and by torch, with
the weights and inputs all positive, which is where roundings towards zero add up. `rho` is the
error against float64 over the library's own (the strict ladder asks for at most 10). The L2 cache
is flushed before each call.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from kopt.actors.rewriter.codegen import Schedule
from kopt.actors.rewriter.codegen.check import loaded, module_source
from kopt.actors.rewriter.codegen.gpu.product import TILES, products

SHAPES = (
    "1024x8192x8192,128x16384x16384,128x32768x32768,16384x4096x4096,4096x4096x4096,"
    "32768x32768x64,128*512x2048x1024"
)
FLUSH_BYTES = 256 << 20
aten = torch.ops.aten


def main() -> None:
    """Time and print."""
    given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
    if set(given) - {"shapes", "repeats"}:
        sys.exit(f"expected shapes=, repeats=, --json, found {' '.join(sys.argv[1:])}")
    if not torch.cuda.is_available():
        sys.exit("expected a GPU, found none: the times are a GPU's")
    rows = []
    for shape in given.get("shapes", SHAPES).split(","):
        row = compared(shape, repeats=int(given.get("repeats", "20")))
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
    if "--json" in sys.argv:
        print(json.dumps({"device": torch.cuda.get_device_name(), "rows": rows}))


def compared(shape: str, *, repeats: int) -> dict[str, object]:
    """Return the microseconds of each way, and the rho of each tile."""
    batch, sizes = shape.split("*") if "*" in shape else ("1", shape)
    rows, cols, depth = (int(size) for size in sizes.split("x"))
    graph = graph_of(int(batch), rows, cols, depth)
    held = [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]
    x, w = (torch.rand(each.shape, device="cuda") for each in held)
    target = next(n for n in graph.graph.nodes if n.op == "call_function").target
    own = target(x, w)
    # A few rows are enough to know the error, and float64 takes long for all.
    part = slice(0, 64)
    exact = target(x[..., part, :].double(), w.double())
    error = (own[..., part, :].double() - exact).abs().max().item()
    found: dict[str, object] = {"shape": shape, "library_us": timed(lambda: target(x, w), repeats)}
    for name in TILES:
        kernels = products(graph, schedule=Schedule(gpu_product=name))
        if not kernels:
            continue
        with tempfile.TemporaryDirectory() as folder:
            module = loaded(module_source(kernels), name=f"product_{name}", folder=Path(folder))
            call = getattr(module, kernels[0].name)
            result = call(x, w)
            mine = (result[..., part, :].double() - exact).abs().max().item()
            found[f"{name}_us"] = timed(lambda call=call: call(x, w), repeats)
            found[f"{name}_rho"] = mine / error
    return found


def graph_of(batch: int, rows: int, cols: int, depth: int) -> fx.GraphModule:
    """Return a graph of one product: linear, or bmm for several."""
    mode, graph = FakeTensorMode(), fx.Graph()
    target = aten.linear.default if batch == 1 else aten.bmm.default
    with mode:
        held = (
            (torch.empty(rows, depth), torch.empty(cols, depth))
            if batch == 1
            else (torch.empty(batch, rows, depth), torch.empty(batch, depth, cols))
        )
        value = target(*held)
    nodes = []
    for name, each in zip(("x", "w"), held, strict=True):
        nodes.append(graph.placeholder(name))
        nodes[-1].meta["val"] = each
    made = graph.call_function(target, tuple(nodes))
    made.meta["val"] = value
    graph.output((made,))
    return fx.GraphModule({}, graph)


def timed(call: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call in microseconds."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    times = []
    for number in range(repeats + 3):
        flush.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number >= 3:
            times.append(1e3 * start.elapsed_time(end))
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    main()
