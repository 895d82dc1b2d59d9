"""The speed of light of a problem: the time that its bytes take through the device's memory.

Pure: numbers in, numbers out. Two figures with two purposes. `sol_us` is what a perfect kernel
would need, every byte that matters moved once at the memory's rate. `floor_us` is what no kernel
can stay below, however clever: a time under it is no time. It counts what surely moves:

* an output is written whole, but on a GPU what fits into the last cache may still be there when the
  kernel ends;
* of an input of which TRIALS elements were tried and each changes the output, at least half is
  read. An input of which one element does not matter may be read in part only, and counts for
  neither figure. What there was no time to try, or has elements of a byte, counts for the first.

Parameters are left out: they may be read in any form that was made of them beforehand. Work besides
moving bytes is left out too. Source: DESIGN §5.4; exploits §E7; profiling notes §B.1, §B.2.
"""

from __future__ import annotations

from dataclasses import dataclass

READ_SHARE = 0.5
"""Least share of an input that is read where TRIALS elements of TRIALS change the output: were less
than half of them of any matter, all those tried would be among them once in 256 times."""
TRIALS = 8
HEADROOM = 1.1
"""No memory is faster than its data sheet by more than this."""

GPU_TB_PER_S: tuple[tuple[str, float], ...] = (
    ("GB200", 8.0),
    ("B200", 8.0),
    ("GH200", 4.9),
    ("H200", 4.8),
    ("H100 NVL", 3.94),
    ("H100 PCIe", 2.04),
    ("H100", 3.35),
    ("H20", 4.0),
    ("H800", 3.35),
    ("A100-SXM4-40GB", 1.555),
    ("A100-PCIE-40GB", 1.555),
    ("A100", 2.039),
    ("A800", 2.039),
    ("L40", 0.864),
    ("RTX 4090", 1.008),
    ("RTX 5090", 1.8),
    ("A10", 0.6),
    ("L4", 0.3),
    ("MI300X", 5.3),
    ("V100", 1.14),
    ("T4", 0.32),
)
"""Memory bandwidth by a part of the device's name, from data sheets; the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How fast a device moves bytes."""

    bytes_per_s: float
    """What is reached (CPU: measured at the size of the problem), or the data sheet's figure."""
    most_bytes_per_s: float
    """What is surely never exceeded, from any cache that the inputs may be in."""
    cache_bytes: int = 0
    """Of outputs, what need not have left the last cache when a kernel ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Bytes of one call."""

    sure_bytes: int
    """Of inputs of which TRIALS elements were tried and each of them matters."""
    input_bytes: int | None
    """Of all inputs but those of which an element was found that does not matter; None where it is
    not known of one whether it has such elements."""
    output_bytes: int
    """Of outputs that share no memory with an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """The two figures of one problem on one device; None where the device is not known."""

    sol_us: float | None = None
    """Of a perfect kernel; None also where it is not known what it has to read."""
    floor_us: float | None = None
    """Below this a time is no time."""
    bytes_per_s: float | None = None
    """Of memory, that `sol_us` is by."""


def speed_of_light(moved: Moved, memory: Memory | None) -> Light:
    """Return both figures, microseconds of one call."""
    if memory is None:
        return Light()
    written = max(moved.output_bytes - memory.cache_bytes, 0)
    least = READ_SHARE * moved.sure_bytes + written
    moves = None if moved.input_bytes is None else moved.input_bytes + moved.output_bytes
    return Light(
        sol_us=None if moves is None else moves / memory.bytes_per_s * 1e6,
        floor_us=least / (HEADROOM * memory.most_bytes_per_s) * 1e6,
        bytes_per_s=memory.bytes_per_s,
    )


def gpu_bytes_per_s(name: str) -> float | None:
    """Return a GPU's memory bandwidth by its data sheet; None for one that is not listed."""
    for part, tb_per_s in GPU_TB_PER_S:
        if part.lower() in name.lower():
            return tb_per_s * 1e12
    return None
