"""GPU architectures: what a block may use, which matrix instructions there are, how to compile.

The one table of such figures: prompts tell authors from it, and `kopt.tools.hardware` has what
differs between GPUs of an architecture. What is not in it is not told: no figure is made up for an
unknown architecture.

Sources: CUDA C++ Programming Guide 13.0, technical specifications per compute capability; PTX ISA
9.0, chapters on mma, wgmma.mma_async and tcgen05.mma (shapes by type); CUDA compiler driver guide,
architecture-specific features (the letter `a`); AMD CDNA3 ISA. Shared memory of sm_90 as an H200
reports it: 228 KiB a multiprocessor, 227 a block.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture of GPUs."""

    name: str
    """As compilers call it: `sm_90`."""
    smem_kib: int
    """Shared memory of a multiprocessor."""
    block_smem_kib: int
    """Most of it that one block may use; above 48 it has to be asked for."""
    threads: int
    """Resident threads of a multiprocessor."""
    registers: int = 65_536
    """32-bit registers of a multiprocessor."""
    warp_mma: tuple[str, ...] = ()
    """Shapes of `mma.sync` (a warp), each with its types."""
    group_mma: str = ""
    """The larger one that is compiled for `compile_name` only, with its shapes, in a sentence."""
    copies: str = ""
    """Copies into shared memory beside plain loads, in a sentence."""
    compile_name: str = ""
    """What its own instructions are compiled for: `sm_90a`; empty where it has none."""

    @property
    def gencode(self) -> str:
        """The flag of nvcc that gives all of its instructions."""
        name = self.compile_name or self.name
        return f"-gencode=arch={name.replace('sm_', 'compute_')},code={name}"


_F16 = "m16n8k16 fp16/bf16"
_AMPERE = (_F16, "m16n8k8 tf32", "m16n8k32 int8", "m8n8k4 fp64")
_ADA = (*_AMPERE, "m16n8k32 fp8")
_CP_ASYNC = "`cp.async` copies 4, 8 or 16 bytes a thread past the registers."
_TMA = (
    "TMA (`cp.async.bulk.tensor`, an mbarrier to wait on) lets one thread copy a tile of up to 5 "
    "dimensions, each at most 256, strides multiples of 16 bytes; `cp.async` is there too."
)
_WGMMA = (
    "`wgmma` (128 threads; B in shared memory, A there or in registers): m64nNk16 fp16/bf16, "
    "m64nNk8 tf32, m64nNk32 fp8; N a multiple of 8 up to 256; tf32 and fp8 operands K-major only"
)
_TCGEN05 = (
    "`tcgen05.mma` (one thread issues it, accumulators in tensor memory): M 64 or 128 (256 by two "
    "blocks), N up to 256 in steps of 16; K 16 fp16/bf16, 8 tf32, 32 fp8/fp6/fp4"
)

ARCHITECTURES: dict[str, Architecture] = {
    each.name: each
    for each in (
        Architecture(
            name="sm_70",
            smem_kib=96,
            block_smem_kib=96,
            threads=2048,
            warp_mma=("m8n8k4 fp16",),
        ),
        Architecture(
            name="sm_75",
            smem_kib=64,
            block_smem_kib=64,
            threads=1024,
            warp_mma=("m16n8k8 fp16", "m8n8k16 int8"),
        ),
        Architecture(
            name="sm_80",
            smem_kib=164,
            block_smem_kib=163,
            threads=2048,
            warp_mma=_AMPERE,
            copies=_CP_ASYNC,
        ),
        Architecture(
            name="sm_86",
            smem_kib=100,
            block_smem_kib=99,
            threads=1536,
            warp_mma=_AMPERE,
            copies=_CP_ASYNC,
        ),
        Architecture(
            name="sm_87",
            smem_kib=164,
            block_smem_kib=163,
            threads=1536,
            warp_mma=_AMPERE,
            copies=_CP_ASYNC,
        ),
        Architecture(
            name="sm_89",
            smem_kib=100,
            block_smem_kib=99,
            threads=1536,
            warp_mma=_ADA,
            copies=_CP_ASYNC,
        ),
        Architecture(
            name="sm_90",
            smem_kib=228,
            block_smem_kib=227,
            threads=2048,
            warp_mma=(_F16, "m16n8k8 tf32", "m16n8k32 int8", "m16n8k16 fp64"),
            group_mma=_WGMMA,
            copies=_TMA,
            compile_name="sm_90a",
        ),
        Architecture(
            name="sm_100",
            smem_kib=228,
            block_smem_kib=227,
            threads=2048,
            warp_mma=(_F16, "m16n8k8 tf32", "m16n8k32 int8"),
            group_mma=_TCGEN05,
            copies=_TMA,
            compile_name="sm_100a",
        ),
        Architecture(
            name="sm_103",
            smem_kib=228,
            block_smem_kib=227,
            threads=2048,
            warp_mma=(_F16, "m16n8k8 tf32", "m16n8k32 int8"),
            group_mma=_TCGEN05,
            copies=_TMA,
            compile_name="sm_103a",
        ),
        Architecture(
            name="sm_120",
            smem_kib=100,
            block_smem_kib=99,
            threads=1536,
            warp_mma=(*_ADA, "m16n8k32 fp6/fp4"),
            copies=_TMA,
            compile_name="sm_120a",
        ),
        Architecture(
            name="gfx942", smem_kib=64, block_smem_kib=64, threads=2048, registers=131_072
        ),
    )
}
"""Name to architecture."""
