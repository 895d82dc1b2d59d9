"""What may be varied in the code written for one and the same computation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

ProductWay = Literal["library", "large", "small", "direct", "direct_small"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Tunables of both back ends; each back end reads its own and ignores the other's."""

    cpu_math: Literal["exact", "fast"] = "exact"
    """exact: elementary functions within about 1 ulp; fast: within about 4."""
    cpu_lanes: int = 64
    """Elements of one step of the inner loop, a power of two; each has a partial sum of its own."""
    cpu_chunk: int = 16384
    """Elements that a thread takes at a time from a long row."""
    cpu_streaming: bool = False
    """Write results past the caches (for results that do not fit them)."""
    cpu_keep: bool = True
    """Keep costly values of a row for the next pass, instead of computing them again."""
    gpu_math: Literal["exact", "fast"] = "exact"
    """exact: elementary functions within about 2 ulp; fast: the hardware's approximations."""
    gpu_block: int = 0
    """Elements of a tile, a power of two; 0 chooses by size."""
    gpu_warps: int = 0
    """Warps of a program; 0 chooses by the tile."""
    gpu_persistent: int = 16384
    """Longest row that is held in registers whole; longer rows are walked once a pass."""

    gpu_product: ProductWay = "library"
    """Who multiplies large float32 matrices: the library, or three tf32 products each, in tiles of
    `gpu.product.TILES`."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain data; `Schedule(**data)` is the way back."""
        return asdict(self)
