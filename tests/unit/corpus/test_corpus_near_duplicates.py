"""Near-duplicates: what counts as one source, and that signatures never change."""

import random

import pytest

from kopt.data.corpus.near_duplicates import NearDuplicates, signature, similarity, tokens


def program(seed: int, *, lines: int = 60) -> str:
    draw = random.Random(seed)
    return "\n".join(
        f"x{draw.randrange(99)} = f{draw.randrange(99)}(y, {line})" for line in range(lines)
    )


def test_layout_and_comments_have_no_place_in_a_source() -> None:
    one = "a = 1  # one\nb=2\n// C\n/* more\n lines */ c\n#include <x>\n"
    assert tokens(one) == ["a", "=", "1", "b", "=", "2", "c", "#", "include", "<", "x", ">"]
    assert similarity(signature("a = 1\nb = 2"), signature("a=1 # x\n\nb =2")) == 1.0


def test_the_estimate_is_near_the_truth() -> None:
    # 60 lines, of which 6 differ: about 1 - 2 * 0.1 / (1 + 0.1) = 0.8 of the 5-grams are shared.
    lines = program(1).splitlines()
    changed = [f"new{n} = other(z{n})" if n % 10 == 0 else line for n, line in enumerate(lines)]
    assert similarity(signature("\n".join(lines)), signature("\n".join(changed))) == pytest.approx(
        0.8, abs=0.12
    )
    assert similarity(signature(program(1)), signature(program(2))) < 0.3


def test_a_near_copy_is_seen_in_its_group_alone() -> None:
    seen = NearDuplicates()
    copy = program(1).replace("f1(", "g1(", 1) + "\n# a remark"
    assert not seen.seen(program(1), group="a")
    assert seen.seen(copy, group="a")
    assert not seen.seen(copy, group="b")
    assert not seen.seen(program(2), group="a")


@pytest.mark.parametrize("source", ["", "x", "a b c d", "\ud800"])
def test_any_text_has_a_signature(source: str) -> None:
    assert similarity(signature(source), signature(source)) == 1.0


def test_signatures_are_equal_on_every_machine() -> None:
    assert int(signature("y = f(x)")[0]) == int(signature("y = f( x )")[0])
    assert signature("y = f(x)").dtype.name == "uint64"
