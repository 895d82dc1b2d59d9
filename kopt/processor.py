"""What is known of a CPU that candidates run on: threads of a call, SIMD instructions.

Source of the names: `flags` of /proc/cpuinfo on x86, `Features` on Arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SIMD: tuple[str, ...] = (
    "sse4_2",
    "avx",
    "avx2",
    "fma",
    "f16c",
    "avx512f",
    "avx512dq",
    "avx512bw",
    "avx512vl",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "avx_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "asimdhp",
    "bf16",
    "i8mm",
    "sve",
    "sve2",
)
"""Extensions that an author of kernels chooses by, in the order told."""
_WIDTHS: Mapping[str, int] = {"avx512f": 512, "avx": 256, "sse4_2": 128, "asimd": 128}
"""Bits of a vector by the extension that has it, the widest first."""
_UNKNOWN_WIDTH = ("sve", "sve2")
"""Whose vectors are as long as the chip's maker chose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """One CPU, as far as it is known."""

    threads: int | None = None
    """That a call of a candidate may use: those of the evaluator's own cores."""
    simd: tuple[str, ...] = ()
    """Those of SIMD that it has; empty where it does not say."""

    @property
    def vector_bits(self) -> int | None:
        """Bits of its widest vectors; None where they are not known."""
        if any(name in self.simd for name in _UNKNOWN_WIDTH):
            return None
        return next((bits for name, bits in _WIDTHS.items() if name in self.simd), None)


def processor_of(cpuinfo: str, *, threads: int | None) -> Processor:
    """Return what lines of /proc/cpuinfo say; of several processors, the first.

    Args:
        cpuinfo: the lines; what is none of them says nothing.
        threads: that a call may use.
    """
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            flags = set(value.split())
            return Processor(threads=threads, simd=tuple(each for each in SIMD if each in flags))
    return Processor(threads=threads)
