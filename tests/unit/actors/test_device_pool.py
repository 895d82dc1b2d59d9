"""The pool that is swept between calls of a GPU: known words, and a sum that follows no rule."""

from __future__ import annotations

from kopt.actors.devices.pool import CHUNK_WORDS, ROUNDS, new_pool, pool_words, swept, wrapped

MASK = (1 << 64) - 1


def word_of(index: int) -> int:
    """The word of an index: splitmix64's own mixing, in rounds."""
    word = (index + 1) * 0x9E3779B97F4A7C15 & MASK
    for _ in range(ROUNDS):
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & MASK
        word = (word ^ word >> 27) * 0x94D049BB133111EB & MASK
        word ^= word >> 31
    return word


def mixed(word: int, digest: int) -> int:
    word = (word ^ digest & MASK) * 0x9E3779B97F4A7C15 & MASK
    return word ^ word >> 32


def test_a_pool_is_twice_the_l2_and_no_less_than_a_small_one() -> None:
    assert pool_words(60 << 20) * 8 == 120 << 20
    assert pool_words(4 << 20) * 8 == 64 << 20


def test_its_words_are_mixed_in_rounds() -> None:
    pool = new_pool(CHUNK_WORDS + 5, device="cpu")
    for at in (0, 1, 7, CHUNK_WORDS - 1, CHUNK_WORDS, CHUNK_WORDS + 4):
        assert int(pool[at]) & MASK == word_of(at)


def test_a_sweep_sums_every_word_mixed_with_the_digest() -> None:
    pool = new_pool(1_000, device="cpu")
    for digest in (0, 1, -1, 1 << 62, -(1 << 63)):
        expected = sum(mixed(word_of(at), digest) for at in range(1_000)) & MASK
        assert swept(pool, digest) & MASK == expected


def test_a_sum_of_two_digests_is_no_sum_of_theirs() -> None:
    # Were it linear, whoever knows a few sums would know them all.
    pool = new_pool(1_000, device="cpu")
    zero, one, two, three = (swept(pool, digest) for digest in (0, 1, 2, 3))
    assert wrapped(three - zero) != wrapped(one - zero + two - zero)


def test_numbers_wrap_as_64_bits_do() -> None:
    assert wrapped((1 << 63) - 1 + 1) == -(1 << 63)
    assert wrapped(-(1 << 63) - 1) == (1 << 63) - 1
