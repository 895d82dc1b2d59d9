import pytest

from kopt.direction import direction_of
from kopt.search.directions import has_collapsed


@pytest.mark.parametrize(
    ("strategy", "direction"),
    [
        ("Tile 64x64, num_warps=8", "tile # num warps #"),
        ("  tile\n128X128 ;  num-warps = 4.", "tile # num warps # "),
        ("use FP16", "use fp16"),
        ("2D tiling", "2d tiling"),
        ("1.5x faster", "# 5x faster"),
        ("\uff34ile 32", "tile #"),  # a full-width T
        ("Größe 3", "grösse #"),
        ("…!", ""),
        ("", ""),
    ],
)
def test_case_punctuation_blanks_and_numbers_make_no_new_direction(strategy, direction):
    assert direction_of(strategy) == direction.strip()


def test_numbers_within_a_word_make_another_direction():
    assert direction_of("cast to fp16") != direction_of("cast to fp32")


@pytest.mark.parametrize(
    ("directions", "collapsed"),
    [
        ("", False),
        ("aa", False),  # two could not hold more than two
        ("aab", True),
        ("abc", False),
        ("abcaab", False),
        ("ccaabbab", True),  # the last six: a a b b a b
        ("abcaabbab", True),
        ("abcdef", False),
        ("fedcbaaaaaaa", True),
    ],
)
def test_a_meltdown_is_two_directions_or_fewer_among_the_last_six(directions, collapsed):
    assert has_collapsed(list(directions), window=6, most=2) is collapsed
