"""A survey: what a problem is in numbers, before anybody writes a candidate for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kopt.timing import Baseline

_BITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedTensor:
    """A tensor without its content."""

    name: str
    """Of arguments and outputs its place (`[0]`, `[1][2]`; empty for an output that is alone), of
    the state its key."""
    shape: tuple[int, ...]
    dtype: str
    """As torch names it: `float32`."""

    @property
    def num_elements(self) -> int:
        """The product of the shape; 1 for a single number."""
        number = 1
        for size in self.shape:
            number *= size
        return number

    @property
    def num_bytes(self) -> int:
        """What its elements take, by the bits that the dtype's name has; a bool takes one byte."""
        bits = _BITS.search(self.dtype)
        return self.num_elements * (int(bits[0]) // 8 if bits else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the evaluator found of a problem at its reference, on the device that it judges on."""

    inputs: tuple[SizedTensor, ...] = ()
    """Tensors of the timed call's arguments, in their order."""
    outputs: tuple[SizedTensor, ...] = ()
    state: tuple[SizedTensor, ...] = ()
    """Parameters and buffers."""
    num_cases: int = 1
    """Argument lists that a candidate must be right on: that one, and those of
    `get_input_cases()`."""
    baseline: Baseline | None = None
    """What speed-ups are against; None where nothing was measured."""
    baselines_us: tuple[tuple[Baseline, float], ...] = ()
    """Median of one call of each baseline that was measured, in microseconds."""
    sol_us: float | None = None
    """Least time of the bytes that have to move; None where it is unknown."""
    bytes_per_s: float | None = None
    """Of memory, measured with as many bytes as a call moves; None where it was not measured."""
    flop_per_s: float | None = None
    """Of a large float32 matrix product, measured; None where it was not."""

    def untimed(self) -> Survey:
        """Return it without what was measured: the same each time."""
        return replace(
            self, baseline=None, baselines_us=(), sol_us=None, bytes_per_s=None, flop_per_s=None
        )
