"""Techniques: which ones a strategy's text names.

Authors write strategies freely, so equal texts are rare: rates are kept by technique. A text that
names none of the table keeps its own first words as its label.
"""

from __future__ import annotations

import re
import unicodedata

from kopt.direction import direction_of

MAX_WORDS = 6
"""Words of a strategy that label it where it names no technique."""
MAX_TECHNIQUES = 4
"""Techniques that one strategy counts for; one that names more is a list, not a strategy."""
_TECHNIQUES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("tensor cores", r"tensor[ -]?core|\bw?g?mma\b|\bwgmma|\bhgmma|mma\.sync|tl\.dot"),
        ("tf32", r"tf32"),
        ("half precision", r"\bbf16|\bfp16|bfloat16|float16|half[ -]precision"),
        ("autotuning", r"auto-?tun"),
        ("vector loads", r"vectori[sz]e|vector(?:ized)? (?:load|access)|float4|128-bit|16[ -]byte"),
        ("coalescing", r"coalesc"),
        ("shared-memory padding", r"swizzl|bank[ -]conflict|\bpad(?:ding|ded)?\b"),
        ("shared-memory tiling", r"shared[ -]mem|\bsmem\b|\btil(?:e|es|ed|ing)\b"),
        ("pipelining", r"pipelin|double[ -]buffer|cp\.async|num_stages|prefetch|\btma\b"),
        ("persistent kernel", r"persistent"),
        ("split k", r"split[ _-]?k\b|stream[ -]?k\b"),
        ("warp reduction", r"shuffle|shfl|warp[ -](?:level )?reduc"),
        ("one pass", r"online[ -]softmax|welford|(?:one|single)[ -]pass"),
        ("fusion", r"\bfus(?:e|es|ed|ing|ion)\b|epilogue|single[ -]kernel|one kernel"),
        ("cuda graphs", r"cuda[ -]?graph"),
        ("register use", r"register|maxnreg|launch[ _]bounds|\bspill"),
        ("launch shape", r"num_warps|block[ _]?size|xblock|occupancy|grid[ -](?:size|stride)"),
        ("memory layout", r"channels[ _-]last|layout|transpos|contiguous"),
        ("algebra", r"algebra|\bfold(?:s|ed|ing)?\b|precomput|closed form|commut|distributiv"),
        ("library call", r"cublas|cudnn|\bmkl\b|onednn|library|torch\.(?:mm|matmul|addmm|nn)"),
        ("unrolling", r"unroll"),
        ("simd", r"\bsimd\b|\bavx"),
        ("threads", r"openmp|\bomp\b|multi-?thread|parallel[ -]for"),
        ("atomics", r"\batomic"),
    )
)


def labels_of(strategy: str) -> tuple[str, ...]:
    """Return the techniques that a strategy names, or its own first words; empty for no words."""
    text = unicodedata.normalize("NFKC", strategy).casefold()
    named = [name for name, pattern in _TECHNIQUES if pattern.search(text)]
    if named:
        return tuple(named[:MAX_TECHNIQUES])
    words = direction_of(strategy).split()[:MAX_WORDS]
    return (" ".join(words),) if words else ()
