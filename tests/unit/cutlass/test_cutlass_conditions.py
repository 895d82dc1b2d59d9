"""C++ conditions: what is known decides, what is not read decides nothing."""

from __future__ import annotations

import pytest

from kopt.cutlass.conditions import holds, names_in


@pytest.mark.parametrize(
    ("condition", "n", "expected"),
    [
        ("N >= 0 && N <= 7", 7, True),
        ("N >= 0 && N <= 7", 8, False),
        ("(N % 8 == 0) && (8 <= N) && (N <= 256)", 100, False),
        ("N == 8 || ((N % 16 == 0) && (16 <= N))", 24, False),
        ("N == 8 || ((N % 16 == 0) && (16 <= N))", 48, True),
        ("N <= (1 << 8)", 257, False),
        ("N <= uint32_t(256)", 256, True),
        ("N / 3 == 2", 8, True),
        ("N != 0u", 0, False),
        ("true || N == 1", 2, True),
        # Of these nothing is said: they bind otherwise in Python, or are C++ alone.
        ("N & 1 == 0", 1, None),
        ("!N", 1, None),
        ("8 <= N <= 16", 100, None),
        ("is_static<N>::value", 1, None),
        ("M == 4", 4, None),
        ("N % 0 == 1", 4, None),
        ("N ? 1 : 0", 0, None),
        ("-N % 3 == 0", 4, None),
        ("__import__('os')", 4, None),
    ],
)
def test_a_condition_is_decided_by_what_is_known(condition: str, n: int, expected) -> None:
    assert holds(condition, numbers={"N": n}, sizes={}) is expected


def test_a_part_that_is_known_decides_beside_one_that_is_not() -> None:
    assert holds("N == 1 && M == 2", numbers={"N": 2}, sizes={}) is False
    assert holds("N == 1 || M == 2", numbers={"N": 1}, sizes={}) is True
    assert holds("N == 1 && M == 2", numbers={"N": 1}, sizes={}) is None


def test_sizes_of_types_in_bytes_and_bits() -> None:
    bytes_of = "sizeof(T) == 4 || sizeof(T) == 16"
    assert holds(bytes_of, numbers={}, sizes={"T": 16}) is False
    assert holds(bytes_of, numbers={}, sizes={"T": 128}) is True
    assert holds("sizeof_bits_v<T> >= 8", numbers={}, sizes={"T": 4}) is False
    assert holds("cute::sizeof_bits<T>::value == 16", numbers={}, sizes={"T": 16}) is True
    assert holds("sizeof(T) == 1", numbers={}, sizes={"T": 4}) is None  # half a byte has no sizeof


def test_which_parameters_a_condition_asks_for() -> None:
    assert names_in("N >= 0 && sizeof(T) == 4") == {"N", "T"}
    assert names_in("size<0>(shape) == 3") is None
