"""GPUs by data sheet: peaks by precision, memory bandwidth, multiprocessors, caches.

What all GPUs of an architecture have (shared memory, registers, matrix instructions) is in
`kopt.tools.architectures`.

Bandwidths are those of `kopt.speed_of_light`. Peaks are dense (no structured sparsity), at boost
clock. `fp32` is that of the vector pipes; the rest are matrix pipes (`fp64` the matrix one where
the GPU has it). What the device itself reports (multiprocessors, caches) goes before this table
where it can be asked.

Sources: NVIDIA A100 data sheet (2021-06); H100 data sheet (2023-10) and Hopper white paper v1.04;
H200 data sheet (2024-11); HGX B200 and Blackwell architecture brief (2024-11); L40S data sheet
(2023-08); Ada white paper v2.1 (RTX 4090); AMD Instinct MI300X data sheet (2023-12). Reached
figures: one H200 SXM, CUDA 13.0, torch 2.11, clocks not locked (profiling notes §B.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from kopt.speed_of_light import GPU_TB_PER_S

Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8"]
"""Of matrix work. `fp32` runs on the vector pipes."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

VECTOR: tuple[Precision, ...] = ("fp32",)
"""Precisions whose matrix work shares the pipes of all other arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One model of GPU."""

    name: str
    arch: str
    """As compilers name it: `sm_90`, `gfx942`."""
    tflops: Mapping[Precision, float]
    """Peak of each precision that it has, TFLOP/s."""
    tb_per_s: float
    """Peak bandwidth of its memory, TB/s."""
    num_sms: int
    """Multiprocessors; compute units on AMD."""
    l2_mib: float
    reached_tflops: Mapping[Precision, float] = field(default_factory=dict)
    """What large library products reach, TFLOP/s, where it was measured."""
    reached_tb_per_s: float | None = None
    """What a copy reaches, TB/s, where it was measured."""

    def ridge(self, precision: Precision) -> float | None:
        """Return the FLOP per byte where the roofs meet; None where it lacks the precision.

        peak FLOP/s of the precision ÷ peak byte/s.
        """
        peak = self.tflops.get(precision)
        return None if peak is None else peak / self.tb_per_s


def _tb_per_s(part: str) -> float:
    """The bandwidth that times are held against, too (`kopt.speed_of_light`)."""
    return dict(GPU_TB_PER_S)[part]


GPUS: tuple[Gpu, ...] = (
    Gpu(
        name="A100 80GB",
        arch="sm_80",
        tflops={"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0},
        tb_per_s=_tb_per_s("A100"),
        num_sms=108,
        l2_mib=40,
    ),
    Gpu(
        name="A100 40GB",
        arch="sm_80",
        tflops={"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0},
        tb_per_s=_tb_per_s("A100-SXM4-40GB"),
        num_sms=108,
        l2_mib=40,
    ),
    Gpu(
        name="H100 PCIe",
        arch="sm_90",
        tflops={
            "fp64": 51.2,
            "fp32": 51.2,
            "tf32": 378.0,
            "fp16": 756.0,
            "bf16": 756.0,
            "fp8": 1513.0,
        },
        tb_per_s=_tb_per_s("H100 PCIe"),
        num_sms=114,
        l2_mib=50,
    ),
    Gpu(
        name="H100 SXM",
        arch="sm_90",
        tflops={
            "fp64": 66.9,
            "fp32": 66.9,
            "tf32": 494.7,
            "fp16": 989.4,
            "bf16": 989.4,
            "fp8": 1978.9,
        },
        tb_per_s=_tb_per_s("H100"),
        num_sms=132,
        l2_mib=50,
    ),
    Gpu(
        name="H200 SXM",
        arch="sm_90",
        tflops={
            "fp64": 66.9,
            "fp32": 66.9,
            "tf32": 494.7,
            "fp16": 989.4,
            "bf16": 989.4,
            "fp8": 1978.9,
        },
        tb_per_s=_tb_per_s("H200"),
        num_sms=132,
        l2_mib=60,
        reached_tflops={"fp32": 51.0, "fp16": 800.0, "bf16": 800.0},
        reached_tb_per_s=4.3,
    ),
    Gpu(
        name="B200",
        arch="sm_100",
        tflops={
            "fp64": 37.0,
            "fp32": 75.0,
            "tf32": 1100.0,
            "fp16": 2250.0,
            "bf16": 2250.0,
            "fp8": 4500.0,
        },
        tb_per_s=_tb_per_s("B200"),
        num_sms=148,
        l2_mib=126,
    ),
    Gpu(
        name="L40S",
        arch="sm_89",
        tflops={
            "fp64": 1.43,
            "fp32": 91.6,
            "tf32": 183.0,
            "fp16": 362.0,
            "bf16": 362.0,
            "fp8": 733.0,
        },
        tb_per_s=_tb_per_s("L40"),
        num_sms=142,
        l2_mib=96,
    ),
    Gpu(
        name="RTX 4090",
        arch="sm_89",
        tflops={
            "fp64": 1.29,
            "fp32": 82.6,
            "tf32": 82.6,
            "fp16": 165.2,
            "bf16": 165.2,
            "fp8": 330.3,
        },
        tb_per_s=_tb_per_s("RTX 4090"),
        num_sms=128,
        l2_mib=72,
    ),
    Gpu(
        name="MI300X",
        arch="gfx942",
        tflops={
            "fp64": 163.4,
            "fp32": 163.4,
            "tf32": 653.7,
            "fp16": 1307.4,
            "bf16": 1307.4,
            "fp8": 2614.9,
        },
        tb_per_s=_tb_per_s("MI300X"),
        num_sms=304,
        l2_mib=32,
    ),
)
"""In no order that matters: names are matched by `find_gpu`."""

_MARKS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    # Part of the name, further parts of which one has to be there (none: no more), the GPU.
    ("a100", ("40gb", "40 gb"), "A100 40GB"),
    ("a100", (), "A100 80GB"),
    ("h100", ("pcie",), "H100 PCIe"),
    ("h100", ("nvl", "mig"), ""),
    ("h100", (), "H100 SXM"),
    ("gh200", (), ""),
    ("h200", ("nvl", "mig"), ""),
    ("h200", (), "H200 SXM"),
    ("gb200", (), ""),
    ("b200", (), "B200"),
    ("l40s", (), "L40S"),
    ("4090", ("laptop", " d"), ""),
    ("4090", (), "RTX 4090"),
    ("mi300x", (), "MI300X"),
)


def find_gpu(device: str) -> Gpu | None:
    """Return the GPU of a device's name, such as `NVIDIA H200`; None for one not in the table.

    Near relatives with other peaks (H100 NVL, GH200, laptop parts, MIG slices) are not taken for
    one another.
    """
    name = device.lower()
    for part, further, gpu_name in _MARKS:
        if part in name and (not further or any(each in name for each in further)):
            return next((gpu for gpu in GPUS if gpu.name == gpu_name), None)
    return None
