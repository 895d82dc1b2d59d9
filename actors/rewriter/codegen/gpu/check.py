"""Compile written Triton for a GPU that need not be there: what CI and the tests rely on."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POINTERS = {
    "torch.float64": "*fp64",
    "torch.float32": "*fp32",
    "torch.float16": "*fp16",
    "torch.bfloat16": "*bf16",
    "torch.int64": "*i64",
    "torch.int32": "*i32",
    "torch.int16": "*i16",
    "torch.int8": "*i8",
    "torch.uint8": "*u8",
    "torch.bool": "*i1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One kernel, compiled."""

    name: str
    shared_bytes: int
    """Shared memory of a program."""
    ptx: str


class _Recorder:
    """Stands in for a launch: notes the kernel, the dtypes of its arguments and its options."""

    def __init__(self, kernel: Any, calls: list[tuple[Any, list[str], dict[str, Any]]]) -> None:  # noqa: ANN401
        self.kernel = kernel
        self.calls = calls

    def __getitem__(self, grid: tuple[int, ...]) -> Any:  # noqa: ANN401
        def launch(*tensors: Any, **options: Any) -> None:  # noqa: ANN401
            self.calls.append((self.kernel, [str(t.dtype) for t in tensors], options))

        return launch


def compile_only(
    source: str, *, function: str, inputs: list[Any], folder: Path, arch: int = 90
) -> list[Compiled]:
    """Compile every kernel that a written function launches, without a GPU.

    The function is called with meta tensors, and its launches are recorded, not made.

    Args:
        source: a whole module (imports and the definition of a `FusedKernel`).
        function: name of the launcher.
        inputs: tensors on the meta device, of the shapes and dtypes that it expects.
        folder: where the module may be written (Triton reads a kernel's source from its file).
        arch: compute capability times ten.

    Returns:
        The kernels in the order of their launch.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = folder / f"{function}_source.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    calls: list[tuple[Any, list[str], dict[str, Any]]] = []
    for name in re.findall(r"^def (_\w+_kernel\w*)\(", source, flags=re.MULTILINE):
        setattr(module, name, _Recorder(getattr(module, name), calls))
    getattr(module, function)(*inputs)
    made = []
    for kernel, dtypes, options in calls:
        signature = {
            name: POINTERS[dtype] for name, dtype in zip(kernel.arg_names, dtypes, strict=True)
        }
        attrs = {(n,): [["tt.divisibility", 16]] for n in range(len(dtypes))}
        ast = ASTSource(fn=kernel, signature=signature, constexprs={}, attrs=attrs)
        done = triton.compile(ast, target=GPUTarget("cuda", arch, 32), options=options)
        made.append(
            Compiled(
                name=kernel.__name__, shared_bytes=done.metadata.shared, ptx=str(done.asm["ptx"])
            )
        )
    return made
