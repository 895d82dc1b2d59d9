"""Beam: rounds, retries, DiverseSelect, idle rounds and meltdowns (KernelOPT Alg. 1)."""

import pytest

from kopt.reward import RewardRule
from kopt.search import ROOT, create_search, restore_search
from kopt.search.config import BeamConfig
from kopt.testing.fakes import correct
from kopt.verdict import CompileFailed

FAILED = CompileFailed(stage="build", log="error")


def new_beam(**options):
    options = {"iterations": 50, "retries": 0, **options}
    return create_search(BeamConfig(**options), rule=RewardRule(), seed=1)


def tell(search, expansion, *verdicts, strategy=""):
    for index, verdict in enumerate(verdicts):
        candidate = f"{expansion.ordinal} {index}"
        search.tell(
            expansion.ordinal, index, candidate=candidate, verdict=verdict, strategy=strategy
        )


def asked(expansions):
    return [(expansion.parent_node, expansion.num_candidates) for expansion in expansions]


def play(search, *speedups, strategy=""):
    """Ask all that a round has to ask, and tell its slots in order; 0 is a failure.

    Returns:
        (node, number of plans) of each expansion.
    """
    expansions = search.ask(100)
    verdicts = [correct(speedup) if speedup else FAILED for speedup in speedups]
    for expansion in expansions:
        here, verdicts = verdicts[: expansion.num_candidates], verdicts[expansion.num_candidates :]
        tell(search, expansion, *here, strategy=strategy)
    assert not verdicts
    return asked(expansions)


def test_the_defaults_are_the_papers():
    config = BeamConfig()
    assert (config.iterations, config.candidates, config.retries, config.width) == (5, 4, 4, 4)
    assert (config.c_ucb, config.idle_iterations) == (1.4, 2)
    assert (config.meltdown_window, config.meltdown_directions) == (6, 2)


def test_the_first_round_is_seeds_and_the_search_waits_for_all_of_them():
    search = new_beam()
    (seeds,) = search.ask(8)
    assert asked([seeds]) == [(ROOT, 4)]
    tell(search, seeds, correct(2.0), correct(3.0), correct(1.0))
    assert search.ask(8) == []
    assert search.finished() is None
    search.tell(seeds.ordinal, 3, candidate="d", verdict=correct(4.0))
    assert asked(search.ask(8)) == [(4, 1), (2, 1), (1, 1), (3, 1)]


def test_the_plans_of_a_round_are_shared_by_those_that_passed():
    search = new_beam()
    play(search, 2.0, 0, 0, 3.0)
    assert play(search, 1.0, 1.1, 1.2, 0) == [(4, 2), (1, 2)]
    # chain of 4: nodes 5 and 6; chain of 1: node 7. Three members, four plans.
    assert sorted(asked(search.ask(8))) == [(5, 1), (6, 1), (7, 2)]


def test_the_plan_left_over_goes_to_the_chain_that_was_tried_less():
    # Round 1: 4x and 3x go on. Round 2: node 1 gets two plans (4, 5), node 2 one (6). Both chains
    # pass with 2x; told at or below node 1 are 3, node 2 are 2, of 6:
    # ln 2 + 1.4 sqrt(ln 6 / 3) = 1.775 against ln 2 + 1.4 sqrt(ln 6 / 2) = 2.018.
    for c_ucb, order in ((1.4, [(6, 2), (4, 1)]), (0.0, [(4, 2), (6, 1)])):
        search = new_beam(candidates=3, width=2, c_ucb=c_ucb)
        play(search, 4.0, 3.0, 1.0)
        assert play(search, 2.0, 0, 2.0) == [(1, 2), (2, 1)]
        assert asked(search.ask(8)) == order


def test_with_fewer_plans_than_members_the_highest_ucb_has_them():
    search = new_beam(candidates=2, width=4)
    play(search, 2.0, 3.0)
    assert play(search, 1.0, 1.5) == [(2, 1), (1, 1)]
    assert asked(search.ask(8)) == [(4, 1), (3, 1)]


def test_a_beam_of_one_is_greedy_over_rounds():
    search = new_beam(width=1)
    play(search, 2.0, 3.0, 1.0, 0)
    assert play(search, 2.5, 4.0, 3.5, 1.0) == [(2, 4)]
    assert asked(search.ask(8)) == [(6, 4)]


def test_a_plan_that_failed_is_repaired_from_its_latest_failure_until_its_retries_are_spent():
    search = new_beam(candidates=2, retries=2)
    assert play(search, 2.0, 0) == [(ROOT, 2)]
    assert play(search, 0) == [(2, 1)]
    assert play(search, 0) == [(3, 1)]
    assert asked(search.ask(8)) == [(1, 2)]


def test_a_repair_that_passed_goes_on_in_the_next_round():
    search = new_beam(candidates=2, retries=2)
    play(search, 2.0, 0)
    assert play(search, 9.0) == [(2, 1)]
    assert asked(search.ask(8)) == [(3, 1), (1, 1)]


def test_repairs_begin_while_other_plans_are_pending_and_the_round_ends_with_the_last():
    search = new_beam(retries=1)
    (seeds,) = search.ask()
    search.tell(seeds.ordinal, 2, candidate="c", verdict=FAILED)
    (repair,) = search.ask(8)
    assert asked([repair]) == [(3, 1)]
    for index in (0, 1, 3):
        search.tell(seeds.ordinal, index, candidate=f"s{index}", verdict=correct(2.0))
    assert search.ask() == []
    tell(search, repair, FAILED)
    assert asked(search.ask(8)) == [(1, 2), (2, 1), (4, 1)]


def test_a_cancelled_plan_is_asked_again_in_its_round():
    search = new_beam()
    play(search, 2.0, 3.0, 4.0, 5.0)
    expansions = search.ask(8)
    search.cancel(expansions[1].ordinal)
    assert asked(search.ask(8)) == [(expansions[1].parent_node, 1)]
    assert search.ask() == []


def test_two_rounds_without_a_better_candidate_end_the_search():
    search = new_beam()
    play(search, 2.0, 3.0, 0, 0)
    play(search, 3.0, 2.9, 1.0, 0)
    assert search.finished() is None
    play(search, 2.0, 2.0, 2.0, 2.0)
    assert search.finished() == "idle"
    assert search.ask(8) == []
    assert (search.told(), search.best()) == (12, 2)


def test_a_better_candidate_begins_the_count_of_idle_rounds_anew():
    search = new_beam()
    for best in (2.0, 1.5, 2.5, 2.5):
        play(search, best, 1.0, 1.0, 1.0)
        assert search.finished() is None
    play(search, 2.5, 1.0, 1.0, 1.0)
    assert search.finished() == "idle"


def test_rounds_in_which_nothing_passes_are_idle_too():
    search = new_beam()
    assert [play(search, 0, 0, 0, 0) for _ in range(2)] == [[(ROOT, 4)], [(ROOT, 4)]]
    assert search.finished() == "idle"


def test_without_the_idle_stop_the_budget_is_told_exactly():
    search = new_beam(iterations=15, idle_iterations=None)
    for _ in range(15):
        play(search, 0, 0, 0, 0)
    assert (search.told(), search.finished()) == (60, "budget")


def test_where_every_round_is_better_the_budget_is_told_exactly():
    search = new_beam(iterations=15)
    for number in range(15):
        play(search, 1.0 + number, 1.0, 0, 0)
    assert (search.told(), search.finished()) == (60, "budget")


def test_retries_are_part_of_the_budget():
    search = new_beam(iterations=2, retries=4)
    play(search, 0, 0, 2.0, 2.0)
    assert play(search, 0, 2.0) == [(1, 1), (2, 1)]
    assert play(search, 3.0) == [(5, 1)]
    assert sum(number for _, number in asked(search.ask(8))) == 1


def test_a_round_in_which_nothing_passed_leaves_the_beam_as_it_was():
    search = new_beam(candidates=2)
    play(search, 2.0, 3.0)
    assert play(search, 0, 0) == [(2, 1), (1, 1)]
    # UCB again: both chains were tried once more
    assert asked(search.ask(8)) == [(2, 1), (1, 1)]


def test_in_a_meltdown_root_joins_the_next_round():
    search = new_beam()
    play(search, 2.0, 3.0, 4.0, 5.0, strategy="Tile 64x64.")
    assert asked(search.ask(8)) == [(ROOT, 1), (4, 1), (3, 1), (2, 1)]


def test_plans_that_differ_and_plans_that_say_nothing_are_no_meltdown():
    search = new_beam(candidates=3)
    search.ask()
    for index, strategy in enumerate(("tile", "fuse", "unroll")):
        verdict = correct(2.0 + index)
        search.tell(0, index, candidate=strategy, verdict=verdict, strategy=strategy)
    assert asked(search.ask(8)) == [(3, 1), (2, 1), (1, 1)]
    search = new_beam(candidates=3)
    play(search, 2.0, 3.0, 4.0)
    assert asked(search.ask(8)) == [(3, 1), (2, 1), (1, 1)]


def test_a_chain_begun_in_a_meltdown_is_kept_beside_the_others():
    search = new_beam(candidates=2, width=2, idle_iterations=None)
    play(search, 5.0, 0, strategy="tile")
    play(search, 5.0, 5.0, strategy="tile")
    (fresh, other) = search.ask(8)
    assert asked([fresh, other]) == [(ROOT, 1), (3, 1)]
    tell(search, fresh, correct(0.5), strategy="fuse")
    tell(search, other, correct(5.0), strategy="unroll")
    assert sorted(asked(search.ask(8))) == [(5, 1), (6, 1)]


def test_what_a_repair_says_is_no_direction():
    search = new_beam(candidates=2, retries=1, meltdown_window=3)
    play(search, 2.0, 0, strategy="tile")
    (repair,) = search.ask()
    tell(search, repair, correct(2.0), strategy="tile")
    # three directions would be a meltdown, the two of the plans are none
    assert asked(search.ask(8)) == [(1, 1), (3, 1)]


def test_closed_members_leave_their_plans_to_the_others_and_then_to_stand_ins():
    search = new_beam(candidates=2, width=1)
    play(search, 2.0, 3.0)
    (first,) = search.ask()
    assert asked([first]) == [(2, 2)]
    search.cancel(first.ordinal, exhausted=True)
    (second,) = search.ask()
    assert asked([second]) == [(1, 2)]  # not of the beam, but the best that is open
    search.cancel(second.ordinal, exhausted=True)
    (third,) = search.ask()
    assert asked([third]) == [(ROOT, 2)]
    search.cancel(third.ordinal, exhausted=True)
    assert search.finished() == "exhausted"


def test_with_nothing_else_open_failed_nodes_are_expanded():
    search = new_beam(candidates=2)
    (seeds,) = search.ask()
    search.tell(seeds.ordinal, 0, candidate="a", verdict=FAILED)
    search.cancel(seeds.ordinal, exhausted=True)
    (repair,) = search.ask(8)
    assert asked([repair]) == [(1, 1)]
    assert search.finished() is None
    tell(search, repair, correct(2.0))
    assert asked(search.ask(8)) == [(3, 1)]


def test_closing_the_last_node_to_be_repaired_ends_the_round_also_in_a_restored_search():
    search = new_beam(candidates=2, retries=3)
    play(search, 2.0, 0)
    (repair,) = search.ask()
    search.cancel(repair.ordinal, exhausted=True)
    assert play(search, 3.0, 3.5) == [(1, 2)]
    snapshot = search.snapshot()
    restored = restore_search(
        snapshot,
        config=BeamConfig(iterations=50, candidates=2, retries=3),
        rule=RewardRule(),
        seed=1,
    )
    assert asked(restored.ask(8)) == asked(search.ask(8)) == [(5, 1), (4, 1)]


def test_an_idle_search_goes_on_once_the_stop_is_off():
    search = new_beam()
    for _ in range(2):
        play(search, 0, 0, 0, 0)
    assert search.finished() == "idle"
    config = BeamConfig(iterations=50, retries=0, idle_iterations=None)
    restored = restore_search(search.snapshot(), config=config, rule=RewardRule(), seed=1)
    assert asked(restored.ask(8)) == [(ROOT, 4)]


@pytest.mark.parametrize("field", ["width", "idle_iterations", "meltdown_window"])
def test_a_setting_of_zero_is_refused(field):
    with pytest.raises(ValueError, match=field):
        BeamConfig(**{field: 0})
