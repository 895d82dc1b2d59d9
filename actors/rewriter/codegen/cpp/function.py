"""A region as Python source with embedded C++: kernels, one entry point, one Python function."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

from kopt.actors.rewriter.codegen.cpp.expressions import HALVES, PLAIN, stored_type
from kopt.actors.rewriter.codegen.cpp.half_source import half_source
from kopt.actors.rewriter.codegen.cpp.kernel_source import KernelWriter
from kopt.actors.rewriter.codegen.cpp.math_source import math_source
from kopt.actors.rewriter.codegen.ir import Load, Map, Value, stored_base
from kopt.actors.rewriter.codegen.python_source import returned, tensor_names
from kopt.actors.rewriter.codegen.schedule import Schedule
from kopt.actors.rewriter.codegen.stages import Stage


def cpp_definition(
    stages: Sequence[Stage],
    *,
    name: str,
    inputs: Sequence[fx.Node],
    roots: Sequence[Value],
    schedule: Schedule,
) -> str:
    """Return the module-level Python of a region.

    Raises:
        Unsupported: a dtype or an op has no C++ form.
    """
    stored = tensor_names(stages)
    sources = {node: f"in{number}" for number, node in enumerate(inputs)}
    functions: set[str] = set()
    kernels, calls = [], []
    for number, stage in enumerate(stages):
        pointers: dict[Value, str] = {}
        for value in stage.program.reads:
            if isinstance(value, Load):
                pointers[value] = sources[value.source]
            elif (base := stored_base(value)) in stored:
                pointers[value] = stored[base]
        writer = KernelWriter(
            stage.program,
            name=f"kernel{number}",
            pointers=pointers,
            outputs={value: stored[value] for value in stage.outputs},
            schedule=schedule,
        )
        kernels.append(writer.write())
        calls.append(f"  kernel{number}({writer.arguments()});")
        functions.update(
            v.op for v in stage.program.values if isinstance(v, Map) and v.op not in PLAIN
        )
    parameters = [f"const {stored_type(n.meta['val'].dtype)}* {sources[n]}" for n in inputs]
    parameters += [f"{stored_type(value.dtype)}* {tensor}" for value, tensor in stored.items()]
    dtypes = [*(node.meta["val"].dtype for node in inputs), *(value.dtype for value in stored)]
    halves = frozenset(HALVES[dtype] for dtype in dtypes if dtype in HALVES)
    source = (
        math_source(
            frozenset(functions),
            fast=schedule.cpu_math == "fast",
            streaming=schedule.cpu_streaming,
        )
        + half_source(halves)
        + "\n"
        + "\n".join(kernels)
        + f'\nextern "C" void run({", ".join(parameters)}, int threads) {{\n'
        + "\n".join(calls)
        + "\n}\n"
    )
    lines = [
        f"_{name} = _load(r'''",
        source + f"''', {len(parameters)})",
        "",
        "",
        f"def {name}({', '.join(sources.values())}):",
    ]
    for node, tensor in sources.items():
        held = node.meta["val"]
        lines.append(f"    {tensor} = _dense({tensor}, {tuple(held.shape)}, {held.dtype})")
    for value, tensor in stored.items():
        lines.append(f"    {tensor} = _empty({value.shape}, {value.dtype})")
    pointers_text = ", ".join(
        f"{tensor}.data_ptr()" for tensor in [*sources.values(), *stored.values()]
    )
    lines.append(f"    _{name}({pointers_text}, torch.get_num_threads())")
    lines.append(f"    return {', '.join(returned(root, stored) for root in roots)}")
    return "\n".join(lines) + "\n"
