"""Run or compile written kernels without the rest of kopt: for tests and for the GPU suite."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import fx

from kopt.actors.rewriter.codegen.cpp.loader import cpp_loader_source
from kopt.actors.rewriter.codegen.kernel import FusedKernel

POINTERS = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int16: "*i16",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.bool: "*i1",
}
"""Triton's name of a pointer to each dtype."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One kernel, compiled for a GPU."""

    name: str
    shared_bytes: int
    """Shared memory of a program."""
    ptx: str


def module_source(kernels: Sequence[FusedKernel]) -> str:
    """Return a file of its own that defines the functions of the kernels."""
    imports = sorted({line for kernel in kernels for line in kernel.imports})
    loader = [cpp_loader_source()] if any(k.language == "cpp" for k in kernels) else []
    return "\n\n".join(["\n".join(imports), *loader, *(k.definition for k in kernels)])


def loaded(source: str, *, name: str, folder: Path) -> ModuleType:
    """Write a module into a folder (Triton reads a kernel's source from its file) and import it."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_fused(
    graph: fx.GraphModule,
    inputs: Sequence[torch.Tensor],
    kernels: Sequence[FusedKernel],
    *,
    module: ModuleType,
) -> list[torch.Tensor]:
    """Run a graph with kernels in the place of the nodes that they replace.

    Args:
        graph: all of its placeholders are tensors.
        inputs: one tensor for each placeholder.
        kernels: from `fuse` on this graph.
        module: the loaded `module_source` of the kernels.

    Returns:
        The graph's outputs.
    """
    env: dict[fx.Node, Any] = {}
    replaced = {node for kernel in kernels for node in kernel.nodes}
    waiting = list(kernels)
    supply = iter(inputs)
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            env[node] = next(supply)
        for kernel in [k for k in waiting if all(arg in env for arg in k.inputs)]:
            waiting.remove(kernel)
            made = getattr(module, kernel.name)(*(env[arg] for arg in kernel.inputs))
            several = made if isinstance(made, tuple) else (made,)
            env.update(zip(kernel.outputs, several, strict=True))
        if node.op == "output":
            return [env[result] for result in _flat(node.args[0])]
        if node.op == "call_function" and node not in replaced:
            args, kwargs = fx.map_arg((node.args, node.kwargs), lambda arg: env[arg])
            env[node] = node.target(*args, **kwargs)
    raise ValueError("a graph without output")


def _flat(returned: object) -> Iterator[fx.Node]:
    if isinstance(returned, fx.Node):
        yield returned
    elif isinstance(returned, tuple | list):
        for part in returned:
            yield from _flat(part)


class _Recorder:
    """Stands in for a jitted kernel: notes what it would be launched with."""

    def __init__(self, kernel: object, launches: list[_Launch]) -> None:
        self._kernel = kernel
        self._launches = launches

    def __getitem__(self, grid: tuple[int, ...]) -> _Recorder:
        return self

    def __call__(self, *tensors: torch.Tensor, **options: int) -> None:
        dtypes = tuple(tensor.dtype for tensor in tensors)
        self._launches.append(_Launch(kernel=self._kernel, dtypes=dtypes, options=options))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    kernel: Any
    dtypes: tuple[torch.dtype, ...]
    options: dict[str, int]


def compile_only(kernel: FusedKernel, *, folder: Path, arch: int = 90) -> list[Compiled]:
    """Compile every Triton kernel that a function launches, on a machine without a GPU.

    The function is called with meta tensors, and its launches are recorded, not made.

    Args:
        kernel: Triton, from `fuse`.
        folder: where the module may be written.
        arch: compute capability times ten.

    Returns:
        The kernels in the order of their launch.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    source = module_source([kernel])
    module = loaded(source, name=f"{kernel.name}_source", folder=folder)
    launches: list[_Launch] = []
    for name in re.findall(r"^def (_\w+_kernel\w*)\(", source, flags=re.MULTILINE):
        setattr(module, name, _Recorder(getattr(module, name), launches))
    held = [node.meta["val"] for node in kernel.inputs]
    getattr(module, kernel.name)(
        *(torch.empty(h.shape, dtype=h.dtype, device="meta") for h in held)
    )
    made = []
    for launch in launches:
        names = launch.kernel.arg_names
        ast = ASTSource(
            fn=launch.kernel,
            signature={n: POINTERS[d] for n, d in zip(names, launch.dtypes, strict=True)},
            constexprs={},
            attrs={(place,): [["tt.divisibility", 16]] for place in range(len(names))},
        )
        done = triton.compile(ast, target=GPUTarget("cuda", arch, 32), options=launch.options)
        made.append(
            Compiled(
                name=launch.kernel.__name__,
                shared_bytes=done.metadata.shared,
                ptx=str(done.asm["ptx"]),
            )
        )
    return made
