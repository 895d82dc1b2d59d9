"""Properties of every policy under random verdicts, orders, cancels and closed nodes."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kopt.reward import RewardRule
from kopt.search import ROOT, create_search
from kopt.search.config import BeamConfig, BestOfNConfig, GreedyConfig, MctsConfig
from kopt.testing.search_model import drive, tell_slot
from kopt.testing.search_steps import assert_counts_add_up, grow, random_steps

CONFIGS = st.one_of(
    st.builds(
        MctsConfig,
        iterations=st.integers(1, 25),
        candidates=st.integers(1, 4),
        c_uct=st.sampled_from([0.0, 1.4, 5.0]),
        alpha=st.sampled_from([0.0, 0.5, 1.0]),
        c_pw_failed=st.sampled_from([0.5, 2.0]),
        terminal_repairs=st.integers(1, 4),
    ),
    st.builds(BestOfNConfig, iterations=st.integers(1, 25), candidates=st.integers(1, 4)),
    st.builds(
        GreedyConfig,
        iterations=st.integers(1, 25),
        candidates=st.integers(1, 4),
        repair_after=st.integers(1, 4),
        restart_after=st.integers(1, 4),
    ),
    st.builds(
        BeamConfig,
        iterations=st.integers(1, 25),
        candidates=st.integers(1, 5),
        retries=st.integers(0, 3),
        width=st.integers(1, 5),
        idle_iterations=st.sampled_from([None, 1, 2, 5]),
        meltdown_window=st.sampled_from([2, 6]),
    ),
)
SEEDS = st.integers(0, 2**32)
QUICK = settings(max_examples=60, deadline=None)


def new_search(config, *, seed):
    return create_search(config, rule=RewardRule(), seed=seed)


@QUICK
@given(config=CONFIGS, seed=SEEDS)
def test_visits_are_told_candidates_whatever_happens(config, seed):
    search = new_search(config, seed=seed)
    for _ in random_steps(search, seed=seed, num_steps=150, closes_nodes=True):
        assert_counts_add_up(search)


@QUICK
@given(config=CONFIGS, seed=SEEDS)
def test_a_terminal_or_closed_node_is_never_asked_nor_anything_below_a_terminal_one(config, seed):
    search = new_search(config, seed=seed)
    for step in random_steps(search, seed=seed, num_steps=300, closes_nodes=True):
        if step.kind != "ask":
            continue
        node = search.node(step.expansion.parent_node)
        assert not node.closed
        while node.parent is not None:
            assert not node.terminal
            node = search.node(node.parent)


@QUICK
@given(config=CONFIGS, seed=SEEDS)
def test_a_terminal_node_stays_terminal(config, seed):
    search = new_search(config, seed=seed)
    terminal = set()
    for _ in random_steps(search, seed=seed, num_steps=200, closes_nodes=True):
        now = {view.node for view in search.nodes() if view.terminal}
        assert terminal <= now
        terminal = now


@QUICK
@given(config=CONFIGS, seed=SEEDS, num_told=st.integers(0, 30), k=st.integers(1, 6))
def test_cancel_restores_the_in_flight_counts(config, seed, num_told, k):
    search = new_search(config, seed=seed)
    grow(search, num_told=num_told)
    before = search.nodes()
    asked = search.ask(k)
    Random(seed).shuffle(asked)
    for expansion in asked:
        assert search.cancel(expansion.ordinal) == expansion.num_candidates
    assert search.nodes() == before


@QUICK
@given(config=CONFIGS, seed=SEEDS, num_told=st.integers(0, 30), k=st.integers(1, 6))
def test_any_order_of_tells_gives_the_same_counts_and_the_same_next_asks(config, seed, num_told, k):
    outcomes = []
    for shuffle in range(3):
        search = new_search(config, seed=seed)
        grow(search, num_told=num_told)
        slots = [(e, index) for e in search.ask(k) for index in range(e.num_candidates)]
        Random(shuffle).shuffle(slots)
        for expansion, index in slots:
            tell_slot(search, expansion, index=index)
        outcomes.append((search.nodes(), search.best(), search.finished(), search.ask(k)))
    assert outcomes[0] == outcomes[1] == outcomes[2]


@QUICK
@given(config=CONFIGS, seed=SEEDS)
def test_a_search_that_has_nothing_pending_and_is_not_finished_always_asks(config, seed):
    search = new_search(config, seed=seed)
    for _ in random_steps(search, seed=seed, num_steps=200, closes_nodes=True):
        if search.pending() == 0:
            snapshot = search.snapshot()
            twin = new_search(config, seed=seed)
            twin.restore(snapshot)
            assert bool(twin.ask()) == (search.finished() is None)


@QUICK
@given(config=CONFIGS, seed=SEEDS, num_steps=st.integers(0, 120))
def test_a_restored_search_goes_on_as_the_original_would(config, seed, num_steps):
    search = new_search(config, seed=seed)
    steps = list(random_steps(search, seed=seed, num_steps=num_steps, closes_nodes=True))
    twin = new_search(config, seed=seed)
    twin.restore(search.snapshot())
    assert twin.nodes() == search.nodes()
    for ordinal in sorted({step.expansion.ordinal for step in steps}):
        for each in (search, twin):
            if each.nodes()[ROOT].in_flight and _has_pending(each, ordinal):
                each.cancel(ordinal)
    assert drive(twin, in_flight=3) == drive(search, in_flight=3)
    assert twin.nodes() == search.nodes()


def _has_pending(search, ordinal):
    return "pending" in search.snapshot()["expansions"][ordinal]["slots"]
