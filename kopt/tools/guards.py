"""What several tools ask before they speak: is a roof near, is there matrix work, who does it."""

from __future__ import annotations

import re

from kopt.evidence import Evidence, KernelEvidence
from kopt.tools.view import MissingFigure, View, sass_count

SM_PCT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_PCT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
DRAM_PCT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
GMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
ISSUE_ACTIVE = "smsp__issue_active.avg.per_cycle_active"
THROUGHPUTS = (SM_PCT, MEMORY_PCT, DRAM_PCT)

TENSOR_PCT = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
ROOFS = (*THROUGHPUTS, TENSOR_PCT)

ROOF_PCT = 75.0
"""A kernel that uses this much of a pipe waits for that pipe, whatever else stalls it. An
elementwise kernel at 86 % of DRAM bandwidth, as much as any reaches, spends 84 % of its warps' time
waiting for loads; from 75 % on, less than a sixth is left."""
BUSY_PCT = 60.0
"""With this much of a pipe used, at most 1.5 times the speed is left: nothing critical."""
TENSOR_ROOF_PCT = 60.0
"""The same of the tensor pipe: power keeps large library products from more than 80 %."""
LEAST_SHARE = 0.10
"""Of the device time, from which a kernel deserves findings."""
MATRIX_SHARE = 0.2
"""Of the reference's FLOPs, from which matrix work is worth tensor cores."""
LIBRARY_MATRIX = re.compile(r"gemm|cublas|cutlass|xmma|nvjet|implicit_|conv|fmha|flash", re.I)
"""Kernels of libraries that do matrix work, by name."""

MATRIX_MNEMONICS: tuple[str, ...] = (
    *("HGMMA", "QGMMA", "IGMMA", "BGMMA"),
    *("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"),
    *("HMMA", "IMMA", "DMMA", "BMMA", "QMMA"),
)
"""Instructions of the tensor cores: Hopper's, Blackwell's, and those of one warp."""


def kernels_worth(evidence: Evidence) -> tuple[KernelEvidence, ...]:
    """Return the candidate's own kernels that take a tenth of the device time or more.

    A kernel whose share is unknown counts.
    """
    return tuple(
        kernel
        for kernel in evidence.kernels
        if kernel.owner == "user" and (kernel.share is None or kernel.share >= LEAST_SHARE)
    )


def is_near_roof(view: View) -> bool:
    """Return whether a throughput is known to be at 75 % of its peak, or the tensor pipe at 60."""
    if (view.get(TENSOR_PCT) or 0.0) >= TENSOR_ROOF_PCT:
        return True
    return any((view.get(name) or 0.0) >= ROOF_PCT for name in THROUGHPUTS)


def is_busy(view: View) -> bool:
    """Return whether a throughput is known to be at 60 % of its peak."""
    return any((view.get(name) or 0.0) >= BUSY_PCT for name in THROUGHPUTS)


def is_on_cpu(view: View) -> bool:
    """Return whether the evidence is of a CPU: its architecture is no `sm_…` and is known."""
    arch = view.evidence.arch
    return not arch.startswith("sm") and arch != "unknown"


def uses_wgmma(view: View) -> bool:
    """Return whether the kernel is known to run Hopper's warpgroup products."""
    return bool(view.get(GMMA)) or bool(view.get("sass:HGMMA")) or bool(view.get("sass:QGMMA"))


def has_matrix_work(view: View) -> bool:
    """Return whether a fifth or more of the reference's FLOPs are matrix work.

    Where the matrix FLOPs are not told apart, a problem that is compute-bound in theory is taken
    for one: nothing else has as many FLOPs for each byte.

    Raises:
        MissingFigure: the roofline does not tell.
    """
    roofline = view.evidence.roofline
    if roofline is None:
        raise MissingFigure("roofline")
    if roofline.matrix_flops is not None and roofline.flops:
        return roofline.matrix_flops > MATRIX_SHARE * roofline.flops
    if roofline.matrix_flops is not None:
        return roofline.matrix_flops > 0
    if (roofline.theoretical or roofline.bottleneck) == "compute":
        return True
    raise MissingFigure("roofline.matrix_flops")


def matrix_elsewhere(evidence: Evidence, *, than: KernelEvidence) -> bool:
    """Return whether another kernel of the call is known to do matrix work on tensor cores."""
    return any(
        _is_matrix_kernel(kernel)
        for kernel in evidence.kernels
        if kernel is not than and kernel.launches
    )


def tensor_instructions(kernel: KernelEvidence) -> int | None:
    """Return how many tensor-core instructions a binary has; None where it was not read."""
    counts = [sass_count(kernel, mnemonic) for mnemonic in MATRIX_MNEMONICS]
    return None if None in counts else sum(count for count in counts if count)


def _is_matrix_kernel(kernel: KernelEvidence) -> bool:
    if kernel.owner == "library" and LIBRARY_MATRIX.search(kernel.name):
        return True
    if tensor_instructions(kernel):
        return True
    return any((kernel.metrics.get(name) or 0.0) > 0 for name in (GMMA, HMMA))
