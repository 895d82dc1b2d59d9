"""Matrix work and the tensor cores: are they used, and by which generation of instructions.

KernelPro App. B, corrected by what Hopper counts: kernels without any tensor instruction read 1.3
to 1.7 % of tensor use (packed-half moves issue there), and a search of SASS for the letters WGMMA
finds nothing: Hopper's instructions are HGMMA, QGMMA, IGMMA.
"""

# ruff: noqa: D102 - `trigger` and `analyze` are described in ProfilingTool

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kopt.evidence import KernelEvidence
from kopt.tools.guards import (
    DRAM_PCT,
    GMMA,
    HMMA,
    LIBRARY_MATRIX,
    MATRIX_MNEMONICS,
    ROOF_PCT,
    TENSOR_PCT,
    has_matrix_work,
    is_on_cpu,
    kernels_worth,
    matrix_elsewhere,
    tensor_instructions,
)
from kopt.tools.registry import ToolRegistry
from kopt.tools.tool import Analysis, ProfilingTool
from kopt.tools.view import MissingFigure, View, sass_count

FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
ROOFLINE = ("roofline.flops", "roofline.matrix_flops")
MAIN_SHARE = 0.5
"""Of the device time: a kernel without its own count of products has to have this much."""

WGMMA_EXAMPLE = """\
# Triton on sm_90: warpgroup products need M >= 64 a warpgroup, 4 or 8 warps, narrow operands
acc = tl.dot(a, b, acc)            # not input_precision="ieee", which runs on FFMA
"""


@ToolRegistry.register
class TensorCoreUnderutilization(ProfilingTool):
    """The reference multiplies matrices, and the kernel that does it leaves tensor cores idle."""

    name = "tensor_core_underutilization"
    title = "Tensor cores idle"
    source = "ncu"
    required = (TENSOR_PCT, GMMA, HMMA)
    optional = (FFMA, "kernel.share", "kernel.launches", *ROOFLINE)
    thresholds: ClassVar[Mapping[str, float]] = {
        "low_pct": 10.0,
        "moderate_pct": 50.0,
        "noise_pct": 2.0,
        "matrix_share": 0.2,
    }
    affinity = ("compute", "mixed")
    priority = 90

    def trigger(self, view: View) -> bool:
        if self._use(view) >= self.thresholds["moderate_pct"]:
            return False
        return has_matrix_work(view) and self._does_matrix_work(view)

    def analyze(self, view: View) -> Analysis:
        use = self._use(view)
        low = use < self.thresholds["low_pct"]
        none = not (view.need(GMMA) or view.need(HMMA))
        return Analysis(
            severity="critical" if low else "medium",
            summary=f"The tensor pipe is active in {use:.1f} % of the cycles"
            + (": no tensor instruction ran; the products run on the FFMA pipe." if none else "."),
            root_cause="The matrix work runs on FFMA instructions."
            if none
            else "The tensor pipe is starved: tiles too small, or loads not far enough ahead.",
            recommendations=(
                "Products by a library (cuBLAS, cuDNN, CUTLASS), with the rest fused around them.",
                "tl.dot or mma with tf32 or bf16 operands, only if the precision policy allows.",
                "Three tf32 products for one (tf32x3) where the accuracy of fp32 is asked for.",
            )
            if none
            else (
                "Larger tiles (128x128 or 128x256) and three to four stages.",
                "Loads by cp.async or TMA, ahead of the products.",
                "Operands in shared memory in the layout that the instruction reads (swizzled).",
            ),
            expected_improvement="2-10x, by the precision" if none else "1.2-2x",
            observed={
                "tensor_pipe_pct": use,
                "gmma_instructions": view.need(GMMA),
                "hmma_instructions": view.need(HMMA),
            },
            cause="tensor_cores",
            explains=frozenset({"stall:math_pipe_throttle"}),
        )

    def _use(self, view: View) -> float:
        use = view.need(TENSOR_PCT)
        idle = not (view.need(GMMA) or view.need(HMMA))
        return 0.0 if idle and use < self.thresholds["noise_pct"] else use

    def _does_matrix_work(self, view: View) -> bool:
        """Whether this kernel does a good part of the products, not some elementwise tail."""
        if view.need(GMMA) or view.need(HMMA):
            return True
        kernel = view.kernel
        roofline = view.evidence.roofline
        if kernel is None or roofline is None:
            return False
        ffma, matrix_flops = view.get(FFMA), roofline.matrix_flops or roofline.flops
        if ffma is not None and matrix_flops:
            by_ffma = 2.0 * ffma * kernel.launches
            return by_ffma >= self.thresholds["matrix_share"] * matrix_flops
        if matrix_elsewhere(view.evidence, than=kernel):
            return False
        share = view.get("kernel.share")
        return (1.0 if share is None else share) >= MAIN_SHARE


@ToolRegistry.register
class WgmmaInstruction(ProfilingTool):
    """Which generation of tensor instructions the candidate's binaries have."""

    name = "wgmma_instruction"
    title = "Tensor instructions of another generation"
    source = "sass"
    scope = "call"
    required = ()
    optional = (*(f"sass:{mnemonic}" for mnemonic in MATRIX_MNEMONICS), DRAM_PCT, *ROOFLINE)
    affinity = ("compute", "mixed")
    priority = 86

    def trigger(self, view: View) -> bool:
        kernels = view.user_kernels
        if not kernels or is_on_cpu(view):
            return False
        if _old_generation(view):
            return True
        counts = [tensor_instructions(kernel) for kernel in kernels]
        if any(counts) or _library_products(view):
            return False
        if None in counts:
            raise MissingFigure("sass")
        return has_matrix_work(view)

    def analyze(self, view: View) -> Analysis:
        old = _old_generation(view)
        if old:
            kernel = old[0]
            count = sum(sass_count(kernel, mnemonic) or 0 for mnemonic in ("HMMA", "IMMA", "QMMA"))
            return Analysis(
                severity="high",
                summary=f"The binary has {count} products of one warp (HMMA, IMMA) and none of a "
                "warpgroup (HGMMA).",
                root_cause="Products of one warp, the instructions of Ampere, reach about 63 % of "
                "Hopper's tensor peak.",
                recommendations=(
                    "tl.dot with 4 or 8 warps and at least 64 rows for each warpgroup.",
                    "wgmma through CuTe or CUTLASS (SM90 atoms), compiled for sm_90a.",
                    "Operands in shared memory, K-major and swizzled.",
                ),
                expected_improvement="1.3-1.5x",
                observed={"hmma_in_binary": float(count), "hgmma_in_binary": 0.0},
                code_example=WGMMA_EXAMPLE,
                cause="tensor_cores",
                # The other tool says that tensor cores idle; here is why.
                explains=frozenset({"tensor_cores"}),
                kernel=kernel.name,
            )
        kernel = max(view.user_kernels, key=lambda each: each.share or 0.0)
        return Analysis(
            severity="critical",
            summary="The reference multiplies matrices; no kernel of the candidate has a tensor "
            "instruction, and no library does the products.",
            root_cause="The matrix work runs on FFMA instructions.",
            recommendations=(
                "Products by a library (cuBLAS, cuDNN, CUTLASS), with the rest fused around them.",
                "tl.dot or mma with tf32 or bf16 operands, only if the precision policy allows; "
                "tf32x3 where the accuracy of fp32 is asked for.",
                "On Hopper: wgmma by tl.dot with 4 or 8 warps, or CuTe's SM90 atoms.",
            ),
            expected_improvement="2-10x, by the precision",
            observed={"tensor_instructions_in_binary": 0.0},
            code_example=WGMMA_EXAMPLE,
            cause="tensor_cores",
            kernel=kernel.name,
        )


def _old_generation(view: View) -> list[KernelEvidence]:
    """The candidate's kernels with products of one warp only on a GPU that has warpgroup ones.

    Where DRAM is the limit the products wait for it, of whatever generation they are.
    """
    if not view.evidence.arch.startswith("sm_90"):
        return []
    found = [
        kernel
        for kernel in kernels_worth(view.evidence)
        if (kernel.metrics.get(DRAM_PCT) or 0.0) < ROOF_PCT
        and any(sass_count(kernel, old) for old in ("HMMA", "IMMA", "QMMA"))
        and not any(sass_count(kernel, new) for new in ("HGMMA", "QGMMA", "IGMMA", "BGMMA"))
    ]
    return sorted(found, key=lambda kernel: kernel.share or 0.0, reverse=True)


def _library_products(view: View) -> bool:
    return any(
        kernel.owner == "library" and LIBRARY_MATRIX.search(kernel.name)
        for kernel in view.evidence.kernels
    )
