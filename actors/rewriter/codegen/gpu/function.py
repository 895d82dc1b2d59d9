"""A region as Python source with Triton kernels and the function that launches them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import fx

from kopt.actors.rewriter.codegen.gpu.kernel_source import KernelWriter
from kopt.actors.rewriter.codegen.gpu.math_source import helpers
from kopt.actors.rewriter.codegen.gpu.tiles import tile
from kopt.actors.rewriter.codegen.ir import Load, Value, stored_base
from kopt.actors.rewriter.codegen.python_source import returned, tensor_names
from kopt.actors.rewriter.codegen.schedule import Schedule
from kopt.actors.rewriter.codegen.stages import Stage

IMPORTS = ("import torch", "import triton", "import triton.language as tl")
LIBDEVICE_IMPORT = "from triton.language.extra import libdevice"


def triton_definition(
    stages: Sequence[Stage],
    *,
    name: str,
    inputs: Sequence[fx.Node],
    roots: Sequence[Value],
    schedule: Schedule,
) -> tuple[str, tuple[str, ...]]:
    """Return the module-level Python of a region, and the import lines that it needs.

    Raises:
        Unsupported: an op or a dtype has no Triton form.
    """
    stored = tensor_names(stages)
    sources = {node: f"in{number}" for number, node in enumerate(inputs)}
    needs: set[str] = set()
    kernels: list[str] = []
    launches: list[str] = []
    for number, stage in enumerate(stages):
        pointers: dict[Value, str] = {}
        for value in stage.program.reads:
            if isinstance(value, Load):
                pointers[value] = sources[value.source]
            elif (base := stored_base(value)) in stored:
                pointers[value] = stored[base]
        writer = KernelWriter(
            stage.program,
            prefix=name,
            pointers=pointers,
            outputs={value: stored[value] for value in stage.outputs},
            tile=tile(stage.program, schedule),
            fast=schedule.gpu_math == "fast",
        )
        text, lines = writer.write(f"_{name}_kernel{number}")
        kernels.append(text)
        launches += [line.replace("part_", f"part{number}_") for line in lines]
        needs |= writer.needs
    body = [f"def {name}({', '.join(sources.values())}):"]
    for node, tensor in sources.items():
        held = node.meta["val"]
        shape = tuple(held.shape)
        body += [
            f"    if {tensor}.shape != {shape} or {tensor}.dtype != {held.dtype}:",
            f'        raise ValueError(f"{name}: expected {held.dtype} of shape {shape}, '
            f'found {{{tensor}.dtype}} of shape {{tuple({tensor}.shape)}}")',
            f"    {tensor} = {tensor}.contiguous()",
        ]
    device = f"{next(iter(sources.values()))}.device"
    for value, tensor in stored.items():
        body.append(
            f"    {tensor} = torch.empty({value.shape}, dtype={value.dtype}, device={device})"
        )
    body += [f"    {line}" for line in launches]
    body.append(f"    return {', '.join(returned(root, stored) for root in roots)}")
    imports = (*IMPORTS, LIBDEVICE_IMPORT) if "libdevice" in needs else IMPORTS
    text = helpers(frozenset(needs), prefix=name) + "".join(kernels) + "\n".join(body) + "\n"
    return text, imports
