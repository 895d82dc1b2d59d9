import math

import pytest

from kopt.reward import RewardRule
from kopt.search import create_search
from kopt.search.config import MctsConfig
from kopt.search.progress import STAGES, UNKNOWN, Progress, progress_of
from kopt.testing.fakes import correct
from kopt.verdict import Cheated, CompileFailed, Crashed, Incorrect, NumericError, TimedOut


def wrong(rel_norm):
    error = NumericError(max_abs=1.0, rel_norm=rel_norm, rho=None)
    return Incorrect(check="values:own", detail="expected 1, found 2", error=error)


@pytest.mark.parametrize(
    ("verdict", "stage"),
    [
        (Cheated(check="two_clocks", detail="80 %"), "cheated"),
        (CompileFailed(stage="static", log=""), "static"),
        (CompileFailed(stage="build", log=""), "build"),
        (TimedOut(stage="build", limit_s=1.0), "build"),
        (CompileFailed(stage="import", log=""), "import"),
        (Crashed(stage="construct", log=""), "construct"),
        (Crashed(stage="correctness", log=""), "correctness"),
        (Incorrect(check="dense", detail="not dense"), "compared"),
        (TimedOut(stage="timing", limit_s=1.0), "timing"),
        (correct(0.1), "correct"),
    ],
)
def test_a_verdict_says_how_far_its_candidate_came(verdict, stage):
    assert progress_of(verdict).stage == stage


def test_a_stage_that_is_not_known_here_is_one_that_did_not_build_or_one_that_ran():
    assert progress_of(CompileFailed(stage="link", log="")).stage == "build"
    assert progress_of(Crashed(stage="model", log="")).stage == "correctness"


def test_only_an_output_that_was_compared_has_an_error_size():
    assert progress_of(wrong(0.25)).error_size == 0.25
    assert progress_of(Incorrect(check="dense", detail="not dense")).error_size is None
    assert progress_of(wrong(math.nan)).error_size is None
    assert progress_of(wrong(math.inf)).error_size is None


def test_ranks_rise_with_the_stages_and_what_is_unknown_is_below_them_all():
    ranks = [UNKNOWN.rank, *(Progress(stage=stage).rank for stage in STAGES)]
    assert ranks == sorted(set(ranks))


def test_a_node_shows_what_was_told_of_it():
    search = create_search(MctsConfig(), rule=RewardRule(), seed=0)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=wrong(0.25), strategy="Tile it.")
    search.tell(0, 1, candidate="b", verdict=correct(2.0))
    views = [(view.strategy, view.progress) for view in search.nodes()]
    assert views == [
        ("", UNKNOWN),
        ("Tile it.", Progress(stage="compared", error_size=0.25)),
        ("", Progress(stage="correct")),
    ]


def test_the_tree_keeps_the_first_400_characters_of_a_strategy():
    search = create_search(MctsConfig(), rule=RewardRule(), seed=0)
    search.ask()
    search.tell(0, 0, candidate="a", verdict=correct(2.0), strategy="x" * 401)
    assert search.node(1).strategy == "x" * 400
