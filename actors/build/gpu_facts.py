"""What Triton and its users ask of a GPU before they compile for it, known without touching one.

The driver is asked by a short-lived process that makes no context, so a build lane that was lent
no GPU may ask too. A node without GPUs compiles for the architecture that TORCH_CUDA_ARCH_LIST
names, as its builds of CUDA do, with the figures of the data-centre GPU that has it.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass

_LOG = logging.getLogger(__name__)
ASK_S = 30.0
"""For a driver that has to load its kernel module first."""
_ASK = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
def attribute(number):
    value = ctypes.c_int()
    assert cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0) == 0
    return value.value
name, total = ctypes.create_string_buffer(256), ctypes.c_size_t()
assert cuda.cuDeviceGetName(name, 256, 0) == 0
assert cuda.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0
print(json.dumps({
    "name": name.value.decode(), "major": attribute(75), "minor": attribute(76),
    "num_sms": attribute(16), "block_shared_bytes": attribute(97),
    "sm_shared_bytes": attribute(81), "sm_registers": attribute(82), "sm_threads": attribute(39),
    "l2_bytes": attribute(38), "total_bytes": total.value,
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """One GPU, as its driver describes it."""

    name: str
    major: int
    """Of its compute capability; 9 of `sm_90`."""
    minor: int
    num_sms: int
    block_shared_bytes: int
    """Of shared memory that a block may opt in to."""
    sm_shared_bytes: int
    sm_registers: int
    sm_threads: int
    l2_bytes: int
    total_bytes: int

    @property
    def arch(self) -> str:
        """`sm_90`."""
        return f"sm_{self.major}{self.minor}"


def _known(
    name: str, major: int, minor: int, *, num_sms: int, shared_kib: int, l2_mib: int, gib: int
) -> GpuFacts:
    return GpuFacts(
        name=name,
        major=major,
        minor=minor,
        num_sms=num_sms,
        block_shared_bytes=(shared_kib - 1) << 10,
        sm_shared_bytes=shared_kib << 10,
        sm_registers=1 << 16,
        sm_threads=2048,
        l2_bytes=l2_mib << 20,
        total_bytes=gib << 30,
    )


KNOWN: dict[str, GpuFacts] = {
    "8.0": _known("NVIDIA A100", 8, 0, num_sms=108, shared_kib=164, l2_mib=40, gib=80),
    "9.0": _known("NVIDIA H200", 9, 0, num_sms=132, shared_kib=228, l2_mib=60, gib=141),
    "10.0": _known("NVIDIA B200", 10, 0, num_sms=148, shared_kib=228, l2_mib=126, gib=180),
}
"""By compute capability. A kernel that depends on another figure is compiled by the device lane."""


@functools.cache
def gpu_of_node() -> GpuFacts | None:
    """Return the first GPU here, or the one that is built for; None where neither is known."""
    hidden = ("CUDA_VISIBLE_DEVICES",)  # a build lane is lent no GPU, and does not need one
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return _asked(environment) or named_gpu(os.environ.get("TORCH_CUDA_ARCH_LIST", ""))


def gpu_in_view() -> GpuFacts | None:
    """Return the first GPU that this process may use; None where the driver shows it none."""
    return _asked(dict(os.environ))


def _asked(environment: dict[str, str]) -> GpuFacts | None:
    """The first GPU of the driver, as a process of that environment sees it."""
    try:
        asked = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _ASK],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=ASK_S,
        )
        return GpuFacts(**json.loads(asked.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return None


def named_gpu(archs: str) -> GpuFacts | None:
    """Return the GPU of the newest architecture that a TORCH_CUDA_ARCH_LIST names, if known."""
    words = archs.replace(";", " ").replace("+PTX", "").replace("a", "").split()
    known = [KNOWN[word] for word in words if word in KNOWN]
    return max(known, key=lambda facts: (facts.major, facts.minor), default=None)
