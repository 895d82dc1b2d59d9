"""Which package each language is written with, and what of it authors need first.

Names alone: signatures come from the package. A name that an installed version lacks is passed
over, and what is public and not listed here follows by name.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata

from kopt.candidate import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where the interface of a language is."""

    package: str
    """To be installed."""
    modules: tuple[tuple[str, str], ...]
    """Module to what programs call it: `triton.language` to `tl`."""
    first: tuple[str, ...]
    """As programs write them, the most needed first."""


PAGES: dict[Language, Page] = {
    "triton": Page(
        package="triton",
        modules=(("triton.language", "tl"), ("triton", "triton")),
        first=(
            "tl.load",
            "tl.store",
            "tl.dot",
            "tl.make_tensor_descriptor",
            "tl.sum",
            "tl.max",
            "tl.reduce",
            "tl.associative_scan",
            "tl.cumsum",
            "tl.where",
            "tl.range",
            "tl.static_range",
            "triton.Config",
            "triton.autotune",
            "tl.full",
            "tl.cast",
            "tl.reshape",
            "tl.permute",
            "tl.trans",
            "tl.expand_dims",
            "tl.join",
            "tl.split",
            "tl.atomic_add",
            "tl.program_id",
            "tl.num_programs",
            "tl.arange",
            "tl.zeros",
            "tl.min",
            "tl.maximum",
            "tl.minimum",
            "tl.exp",
            "tl.exp2",
            "tl.log",
            "tl.rsqrt",
            "tl.sqrt_rn",
            "tl.div_rn",
            "tl.erf",
            "tl.fma",
            "tl.sigmoid",
            "tl.atomic_cas",
            "tl.multiple_of",
            "tl.max_contiguous",
            "tl.argmax",
            "tl.sort",
            "tl.gather",
            "tl.inline_asm_elementwise",
            "tl.debug_barrier",
            "tl.rand",
        ),
    ),
    "helion": Page(
        package="helion",
        modules=(("helion.language", "hl"), ("helion", "helion")),
        first=(
            "hl.tile",
            "hl.grid",
            "helion.kernel",
            "hl.load",
            "hl.store",
            "hl.zeros",
            "hl.full",
            "hl.dot",
            "hl.reduce",
            "hl.associative_scan",
            "hl.cumsum",
            "hl.specialize",
            "hl.register_block_size",
            "hl.register_tunable",
            "hl.static_range",
            "hl.arange",
            "hl.atomic_add",
            "hl.subscript",
            "hl.inline_triton",
            "hl.tile_index",
            "helion.Config",
        ),
    ),
    "cute": Page(
        package="nvidia-cutlass-dsl",
        modules=(
            ("cutlass.cute", "cute"),
            ("cutlass.cute.arch", "cute.arch"),
            ("cutlass.cute.runtime", "cute.runtime"),
        ),
        first=(
            "cute.compile",
            "cute.runtime.from_dlpack",
            "cute.make_layout",
            "cute.make_ordered_layout",
            "cute.make_tensor",
            "cute.local_tile",
            "cute.zipped_divide",
            "cute.make_tiled_mma",
            "cute.make_tiled_copy_tv",
            "cute.make_copy_atom",
            "cute.make_mma_atom",
            "cute.copy",
            "cute.gemm",
            "cute.make_fragment_like",
            "cute.make_rmem_tensor",
            "cute.make_identity_tensor",
            "cute.tile_to_shape",
            "cute.size",
            "cute.cosize",
            "cute.ceil_div",
            "cute.elem_less",
            "cute.autovec_copy",
            "cute.arch.thread_idx",
            "cute.arch.block_idx",
            "cute.arch.barrier",
            "cute.arch.warp_reduction",
            "cute.arch.shuffle_sync_bfly",
            "cute.arch.alloc_smem",
        ),
    ),
}
"""Languages whose package can be asked. CUDA and C++ have none; torch is known to all."""


def installed_version(language: Language) -> str | None:
    """Return the version of a language's package; None where it has none, or is not installed."""
    page = PAGES.get(language)
    if page is None:
        return None
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(page.package)
    return None
