"""The pool that a GPU reads between two timed calls: it evicts the L2, and cannot be left out.

What a call is given depends on the sum of the pool's words, each mixed with the digest of the
output before (chain.cu, `sweep`). Nothing shorter gives that sum: the mixture is no linear function
of the digest, and to make a word of the pool anew takes a GPU longer than to read it. A buffer that
is merely overwritten, as others flush it, is left out by a candidate that replaces the loop, whose
calls then find their inputs in the L2. That a sweep evicts is its loads' doing: who replaces it may
read the pool by loads that leave the L2 as it is, in the same time. Source: DESIGN §5.4; exploits
20, 32.
"""

from __future__ import annotations

from functools import lru_cache

import torch

FLUSH_FACTOR = 2
"""The pool's size over the L2's."""
LEAST_L2_BYTES = 32 << 20
CHUNK_WORDS = 1 << 21
"""Mixed at a time, by torch: what that takes beside the pool stays small."""
ROUNDS = 8
"""Of a word: to make it anew takes a GPU several times as long as to read it."""
_ODD = 0x9E3779B97F4A7C15
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Of splitmix64's mixing, which is done in rounds."""


def pool_words(l2_bytes: int) -> int:
    """Return how many words of eight bytes a pool has, for an L2 of a size; an even number."""
    return FLUSH_FACTOR * max(l2_bytes, LEAST_L2_BYTES) // 16 * 2


def new_pool(words: int, *, device: str) -> torch.Tensor:
    """Return the pool of a size, int64; the same in every process and on every device."""
    pool = torch.empty(words, dtype=torch.int64, device=device)
    for begin in range(0, words, CHUNK_WORDS):
        part = pool[begin : begin + CHUNK_WORDS]
        state = torch.arange(begin + 1, begin + 1 + part.numel(), device=device) * _signed(_ODD)
        for _ in range(ROUNDS):
            for shift, factor in _STEPS:
                state = (state ^ _shifted(state, shift)) * _signed(factor)
            state ^= _shifted(state, 31)
        part.copy_(state)
    return pool


def swept(pool: torch.Tensor, digest: int) -> int:
    """Return what a sweep of the pool gives with a digest, modulo 2**64 as a signed number."""
    total = torch.zeros((), dtype=torch.int64, device=pool.device)
    for begin in range(0, pool.numel(), CHUNK_WORDS):
        words = (pool[begin : begin + CHUNK_WORDS] ^ digest) * _signed(_ODD)
        total += (words ^ _shifted(words, 32)).sum()
    return int(total)


@lru_cache(maxsize=1)
def kept_pool(words: int, device: str) -> torch.Tensor:
    """Return a pool that this process keeps, for whoever verifies what children swept."""
    return new_pool(words, device=device)


def wrapped(value: int) -> int:
    """Return a number modulo 2**64, signed, as 64 bits hold it."""
    return _signed(value % (1 << 64))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _shifted(words: torch.Tensor, bits: int) -> torch.Tensor:
    """Shift to the right as unsigned numbers are shifted."""
    return (words >> bits) & ((1 << (64 - bits)) - 1)
