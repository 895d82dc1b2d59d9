"""Stage 1: peaks, ridges, classes in theory and as measured, tiers, the speed of light."""

from __future__ import annotations

import pytest

from kopt.evidence import Roofline
from kopt.tools.architectures import ARCHITECTURES
from kopt.tools.hardware import GPUS, find_gpu
from kopt.tools.roofline import (
    Work,
    agreed_class,
    analyse_reference,
    classes_asked,
    disagreement,
    measured_class,
    speed_of_light,
    theoretical_class,
    tier,
)

H200 = find_gpu("NVIDIA H200")


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_a_device_is_found_by_its_name(device, name) -> None:
    gpu = find_gpu(device)
    assert gpu is not None
    assert gpu.name == name


@pytest.mark.parametrize(
    "device",
    ["NVIDIA GH200 480GB", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA T4", "cpu", ""],
)
def test_a_near_relative_with_other_peaks_is_not_taken_for_it(device) -> None:
    assert find_gpu(device) is None


@pytest.mark.parametrize(
    ("device", "precision", "ridge"),
    [
        # Peak TFLOP/s ÷ TB/s: 66.9 ÷ 4.8, 494.7 ÷ 4.8, 989.4 ÷ 4.8, 19.5 ÷ 2.039, 312 ÷ 2.039, …
        ("NVIDIA H200", "fp32", 13.9),
        ("NVIDIA H200", "tf32", 103.1),
        ("NVIDIA H200", "bf16", 206.1),
        ("NVIDIA A100-SXM4-80GB", "fp32", 9.6),
        ("NVIDIA A100-SXM4-80GB", "bf16", 153.0),
        ("NVIDIA H100 80GB HBM3", "tf32", 147.7),
        ("NVIDIA B200", "bf16", 281.3),
        ("NVIDIA L40S", "fp32", 106.0),
        ("NVIDIA GeForce RTX 4090", "bf16", 163.9),
        ("AMD Instinct MI300X", "fp32", 30.8),
    ],
)
def test_ridges_by_hand(device, precision, ridge) -> None:
    assert find_gpu(device).ridge(precision) == pytest.approx(ridge, abs=0.06)


def test_a_precision_that_a_gpu_lacks_has_no_ridge() -> None:
    assert find_gpu("NVIDIA A100-SXM4-80GB").ridge("fp8") is None


def test_the_table_holds_seven_gpus_of_whole_rows() -> None:
    assert len(GPUS) >= 7
    for gpu in GPUS:
        assert {"fp32", "tf32", "bf16"} <= set(gpu.tflops)
        assert gpu.tflops["fp32"] <= gpu.tflops["tf32"] <= gpu.tflops["bf16"]
        assert min(gpu.num_sms, gpu.l2_mib) > 0
        assert gpu.arch in ARCHITECTURES


def test_the_speed_of_light_of_bytes_by_hand() -> None:
    # 480 MB at 4.8 TB/s are 100 us; at the 4.3 that a copy reaches 111.6, and a launch of 3.
    work = Work(bytes=480e6)
    assert speed_of_light(work, H200).us == pytest.approx(100.0)
    assert speed_of_light(work, H200).limit == "memory"
    assert speed_of_light(work, H200, reached=True).us == pytest.approx(114.63, abs=0.01)


def test_the_speed_of_light_of_products_by_hand() -> None:
    # 2·4096³ = 137.4 GFLOP: 2054 us at 66.9 TFLOP/s, 277.8 us at 494.7.
    flops = 2 * 4096.0**3
    fp32 = speed_of_light(Work(matrix_flops=(("fp32", flops),), bytes=2e8), H200)
    assert (round(fp32.us), fp32.limit) == (2054, "vector")
    tf32 = speed_of_light(Work(matrix_flops=(("tf32", flops),), bytes=2e8), H200)
    assert (round(tf32.us), tf32.limit) == (278, "matrix")


def test_pipes_work_side_by_side() -> None:
    # 66.9 GFLOP of vector work and 494.7 of tf32 take 1000 us each, and together no longer.
    work = Work(matrix_flops=(("tf32", 494.7e9),), vector_flops=66.9e9, bytes=1.0)
    assert speed_of_light(work, H200).us == pytest.approx(1000.0)


def test_work_in_a_precision_that_the_gpu_lacks_has_no_speed_of_light() -> None:
    work = Work(matrix_flops=(("fp8", 1e9),), bytes=1e6)
    assert speed_of_light(work, find_gpu("NVIDIA A100-SXM4-80GB")) is None


@pytest.mark.parametrize(
    ("intensity", "expected"),
    [(4.9, "memory"), (5.0, "mixed"), (20.0, "mixed"), (20.1, "compute")],
)
def test_the_theoretical_class_by_intensity_over_ridge(intensity, expected) -> None:
    assert theoretical_class(intensity, ridge=10.0, sol_us=100.0) == expected


def test_a_call_of_a_few_microseconds_is_bound_by_latency() -> None:
    assert theoretical_class(100.0, ridge=10.0, sol_us=7.9) == "latency"
    assert theoretical_class(100.0, ridge=10.0, sol_us=8.0) == "compute"
    assert theoretical_class(100.0, ridge=10.0) == "compute"


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [
        (39.9, 39.9, "latency"),
        (40.0, 29.9, "compute"),
        (50.0, 40.0, "mixed"),
        (50.1, 40.0, "compute"),
        (40.0, 50.1, "memory"),
        (10.0, 86.0, "memory"),
    ],
)
def test_the_measured_class_by_throughputs(compute, memory, expected) -> None:
    assert measured_class(compute, memory_pct=memory) == expected


def test_agreement_is_sure_and_disagreement_keeps_the_theory() -> None:
    assert agreed_class("memory", "memory") == ("memory", "high")
    assert agreed_class("memory", "compute") == ("memory", "medium")
    assert agreed_class("memory", None) == ("memory", "low")
    assert agreed_class(None, "latency") == ("latency", "low")
    assert agreed_class(None, None) == (None, None)


@pytest.mark.parametrize(
    ("compute", "memory", "expected"),
    [
        (80.1, 10.0, "near-optimal"),
        (10.0, 80.1, "near-optimal"),
        (80.0, 10.0, "compute-bound"),
        (40.0, 41.0, "memory-bound"),
        (40.0, 40.0, "underutilized"),
    ],
)
def test_kernelopt_s_tiers(compute, memory, expected) -> None:
    assert tier(compute, memory_pct=memory) == expected


def test_the_analysis_of_a_reference_by_hand() -> None:
    # exp over 2**26 elements: 512 MiB, 4 FLOP each: 0.5 FLOP/B against a ridge of 13.9; 111.8 us.
    work = Work(vector_flops=4 * 2.0**26, bytes=8 * 2.0**26)
    roofline = analyse_reference(work, H200, compute_pct=13.0, memory_pct=86.0)
    assert roofline.intensity == 0.5
    assert (roofline.theoretical, roofline.measured) == ("memory", "memory")
    assert (roofline.bottleneck, roofline.confidence) == ("memory", "high")
    assert roofline.tier == "near-optimal"
    assert roofline.sol_us == pytest.approx(111.85, abs=0.01)
    assert roofline.matrix_flops == 0.0


def test_a_launch_bound_reference_is_of_latency() -> None:
    work = Work(bytes=480e6)
    assert analyse_reference(work, H200, is_launch_bound=True).bottleneck == "latency"


def test_an_unknown_device_leaves_theory_unknown() -> None:
    roofline = analyse_reference(Work(bytes=1e6), None, compute_pct=60.0, memory_pct=20.0)
    assert (roofline.ridge, roofline.sol_us, roofline.theoretical) == (None, None, None)
    assert (roofline.bottleneck, roofline.confidence) == ("compute", "low")


def test_the_precision_of_most_of_the_matrix_work_sets_the_ridge() -> None:
    work = Work(matrix_flops=(("fp32", 1e9), ("tf32", 3e9)), bytes=1e6)
    assert work.precision == "tf32"
    assert analyse_reference(work, H200).ridge == pytest.approx(103.06, abs=0.01)


def test_a_disagreement_says_which_way() -> None:
    spilled = Roofline(theoretical="compute", measured="memory", bottleneck="compute")
    assert "fuse" in disagreement(spilled)
    assert classes_asked(spilled) == {"compute", "memory"}
    assert disagreement(Roofline(theoretical="memory", measured="memory")) == ""
    assert classes_asked(None) == frozenset()
