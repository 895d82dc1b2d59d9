"""Tensor cores: who does the matrix work, and by which instructions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kopt.evidence import Evidence, KernelEvidence
from kopt.testing.planted_evidence import MATMUL, MATMUL_FLOPS, healthy_metrics, one_kernel
from kopt.tools import ToolRegistry, diagnose

PIPE = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
GMMA = "sm__inst_executed_pipe_tensor_op_gmma.sum"
HMMA = "sm__inst_executed_pipe_tensor_op_hmma.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
ON_FFMA = {FFMA: MATMUL_FLOPS / 2}


@pytest.mark.parametrize(
    ("pct", "severity"), [(9.9, "critical"), (10.0, "medium"), (49.9, "medium"), (50.0, None)]
)
def test_idle_tensor_cores_are_critical_below_10_and_told_below_50(kernel, pct, severity) -> None:
    found = kernel("tensor_core_underutilization", {PIPE: pct, HMMA: 1e6}, work=MATMUL)
    assert (found and found.severity) == severity


def test_the_noise_of_the_pipe_is_read_as_zero(kernel) -> None:
    found = kernel("tensor_core_underutilization", {PIPE: 1.7, **ON_FFMA}, work=MATMUL)
    assert found.observed["tensor_pipe_pct"] == 0.0
    found = kernel("tensor_core_underutilization", {PIPE: 1.7, HMMA: 1.0}, work=MATMUL)
    assert found.observed["tensor_pipe_pct"] == 1.7


def test_a_problem_without_matrix_work_needs_no_tensor_cores(kernel) -> None:
    assert kernel("tensor_core_underutilization", ON_FFMA) is None


def test_the_kernel_has_to_do_a_fifth_of_the_products(kernel) -> None:
    tail = {FFMA: 0.099 * MATMUL_FLOPS}
    assert kernel("tensor_core_underutilization", tail, work=MATMUL) is None
    most = {FFMA: 0.1 * MATMUL_FLOPS}
    assert kernel("tensor_core_underutilization", most, work=MATMUL).severity == "critical"


def test_unknown_matrix_work_is_not_none(kernel) -> None:
    evidence = one_kernel(healthy_metrics(ON_FFMA))
    roofline = replace(evidence.roofline, matrix_flops=None, bottleneck=None, theoretical=None)
    tool = ToolRegistry.get("tensor_core_underutilization")
    (silent,) = diagnose(replace(evidence, roofline=roofline), tools=[tool]).silent
    assert silent.missing == ("roofline.matrix_flops",)


def call(*kernels: KernelEvidence, arch: str = "sm_90") -> Evidence:
    evidence = one_kernel(healthy_metrics(), work=MATMUL)
    return replace(evidence, kernels=kernels, arch=arch)


def own(name: str = "mine", *, share: float = 1.0, **sass: int) -> KernelEvidence:
    return KernelEvidence(name=name, owner="user", launches=1, share=share, sass=sass)


def wgmma(evidence: Evidence):
    diagnosis = diagnose(evidence, tools=[ToolRegistry.get("wgmma_instruction")])
    if diagnosis.findings:
        return diagnosis.findings[0].severity
    return diagnosis.silent[0].missing if diagnosis.silent else None


def test_products_of_one_warp_on_hopper_are_told() -> None:
    assert wgmma(call(own(HMMA=64, EXIT=1))) == "high"
    assert wgmma(call(own(HMMA=64, HGMMA=8))) is None
    assert wgmma(call(own(**{"HMMA.16816.F32.BF16": 64}))) == "high"
    assert wgmma(call(own(**{"HGMMA.64x256x16.F32.BF16": 8}))) is None


def test_products_of_one_warp_are_right_on_ampere() -> None:
    assert wgmma(call(own(HMMA=64, EXIT=1), arch="sm_80")) is None


def test_a_cpu_has_no_tensor_instructions_to_miss() -> None:
    assert wgmma(call(own(vfmadd231ps=64), arch="x86_64")) is None


def test_no_tensor_instruction_for_a_matrix_product_is_critical() -> None:
    assert wgmma(call(own(FFMA=1000))) == "critical"
    assert wgmma(replace(call(own(FFMA=1000)), roofline=one_kernel({}).roofline)) is None


def test_a_library_may_do_the_products() -> None:
    library = KernelEvidence(name="sm90_xmma_gemm_f32", owner="library", launches=1, share=0.9)
    assert wgmma(call(own(FFMA=1000, share=0.1), library)) is None


def test_a_binary_that_was_not_read_may_have_them() -> None:
    assert wgmma(call(own(FFMA=1000, share=0.5), own("other", share=0.5))) == ("sass",)
