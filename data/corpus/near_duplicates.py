"""Near-duplicates: sources whose sets of token 5-grams are alike, by MinHash.

A source is normalised to its tokens: comments, blank space and layout have no place in it, numbers
and strings are what they are. The signature is one-permutation MinHash (Li, Owen, Zhang 2012): one
hash of each 5-gram, its top bits choose one of 128 bins, a bin keeps its least; an empty bin takes
its right neighbour's (Shrivastava and Li 2014). Equal bins estimate the Jaccard similarity. Bands
of eight bins find candidates for comparison: at a similarity of 0.85 one of the sixteen bands
agrees with a chance of 0.994.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import defaultdict
from functools import lru_cache

import numpy as np
import numpy.typing as npt

SHINGLE = 5
"""Tokens."""
BIN_BITS = 7
BINS = 1 << BIN_BITS
BAND = 8
"""Bins that must all agree for two sources to be compared."""
THRESHOLD = 0.85
"""Similarity from which on two sources are one."""
MAX_BUCKET = 16
"""Sources that one band's bucket is compared with."""
Signature = npt.NDArray[np.uint64]
"""Shape [BINS]."""
_TOKEN = re.compile(
    r"#(?!\s*(?:include|define|pragma|if|ifdef|ifndef|endif|else|undef)\b)[^\n]*|//[^\n]*"
    r"|/\*.*?\*/|(\w+|[^\w\s])",
    re.DOTALL,
)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def tokens(source: str) -> list[str]:
    """Return the tokens of a source in Python or C, without its comments."""
    return [token for token in _TOKEN.findall(source) if token]


def source_digest(source: str) -> str:
    """Return what names a source whatever its layout and comments."""
    return hashlib.sha256("\0".join(tokens(source)).encode("utf-8", "replace")).hexdigest()


def signature(source: str) -> Signature:
    """Return the MinHash of a source: shape [BINS], equal on every machine."""
    words = tokens(source)
    codes = np.fromiter(map(_code, words), np.uint64, len(words))
    count = max(1, len(codes) - SHINGLE + 1)
    if len(codes) < SHINGLE:
        codes = np.pad(codes, (0, SHINGLE - len(codes)))
    mixed = np.zeros(count, np.uint64)
    for place in range(SHINGLE):
        mixed = _mix(mixed ^ codes[place : place + count])
    mixed.sort()
    bins = mixed >> np.uint64(64 - BIN_BITS)
    first = np.searchsorted(bins, np.arange(BINS, dtype=np.uint64))
    filled = np.searchsorted(bins, np.arange(BINS, dtype=np.uint64), side="right") > first
    # Empty bins borrow from the next filled one to the right, round the end.
    places = np.where(filled, np.arange(BINS), 2 * BINS)
    right = np.minimum.accumulate(np.concatenate((places, places + BINS))[::-1])[::-1][:BINS]
    borrowed: Signature = mixed[first[right % BINS]] + (right - np.arange(BINS)).astype(np.uint64)
    return borrowed


def similarity(one: Signature, other: Signature) -> float:
    """Return the estimated Jaccard similarity of two sources, 0 to 1."""
    return float(np.count_nonzero(one == other)) / BINS


class NearDuplicates:
    """Remembers sources by group, and says which ones were there before, nearly."""

    def __init__(self, *, threshold: float = THRESHOLD) -> None:
        """Take the least similarity that counts, 0 to 1."""
        self._threshold = threshold
        self._kept: list[Signature] = []
        self._buckets: defaultdict[tuple[str, int, bytes], list[int]] = defaultdict(list)

    def seen(self, source: str, *, group: str) -> bool:
        """Return whether a source like this one was given before in the group; if not, keep it.

        Args:
            source: a module.
            group: sources of other groups do not count.
        """
        mine = signature(source)
        keys = [(group, band, mine[band : band + BAND].tobytes()) for band in range(0, BINS, BAND)]
        near = {number for key in keys for number in self._buckets.get(key, ())}
        if any(similarity(mine, self._kept[number]) >= self._threshold for number in near):
            return True
        self._kept.append(mine)
        for key in keys:
            bucket = self._buckets[key]
            if len(bucket) < MAX_BUCKET:
                bucket.append(len(self._kept) - 1)
        return False


@lru_cache(maxsize=1 << 16)
def _code(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def _mix(values: Signature) -> Signature:
    """Spread 64 bits over 64 bits (the finaliser of splitmix64)."""
    values = (values + _SPREAD).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Signature = values ^ (values >> np.uint64(31))
    return mixed
