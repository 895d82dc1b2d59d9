"""Nodes and places of a search's tree, from events whose numbers are known."""

from pathlib import Path

import pytest

from kopt.data.fold import fold
from kopt.data.journal_files import read_events
from kopt.report.nodes import ROOT, best_node, tree_nodes, way_to
from kopt.report.tree_layout import FEW, places
from kopt.testing.sample_run import SAMPLE_ARMS, write_sample_run


@pytest.fixture
def searches(tmp_path: Path):
    return fold(read_events(write_sample_run(tmp_path / "first").path)).searches


def test_visits_count_a_node_and_everything_below_it(searches):
    # Nodes 1 and 2 are ROOT's; 3 to 6 are below node 2.
    nodes = tree_nodes(searches["set/p0/mcts-openai/0"])
    assert [node.node for node in nodes] == [1, 2, 3, 4, 5, 6]
    assert [node.parent for node in nodes] == [ROOT, ROOT, 2, 2, 2, 2]
    assert [node.visits for node in nodes] == [1, 5, 1, 1, 1, 1]


def test_the_best_node_and_the_way_to_it(searches):
    search = searches["set/p0/mcts-openai/0"]
    assert best_node(search) == 6
    assert way_to(6, tree_nodes(search)) == [2, 6]


def test_a_search_without_a_correct_candidate_has_no_best_node(searches):
    assert SAMPLE_ARMS["mcts-openai"][5] is None
    assert best_node(searches["set/p5/mcts-openai/0"]) is None


def test_a_parent_stands_above_the_middle_of_its_children():
    # ROOT has 1 and 2; 1 has 3 and 4. Leaves from the left: 3, 4, 2.
    found = places({1: ROOT, 2: ROOT, 3: 1, 4: 1})
    assert found == {3: (0.0, 2.0), 4: (1.0, 2.0), 1: (0.5, 1.0), 2: (2.0, 1.0), ROOT: (1.25, 0.0)}


def test_a_tree_without_nodes_has_its_root_alone():
    assert places({}) == {ROOT: (0.0, 0.0)}


def test_no_two_nodes_stand_on_one_place_however_wide_the_tree():
    parents = dict.fromkeys(range(1, 2000), ROOT) | {2000: 7, 2001: 7, 2002: 2000}
    found = places(parents)
    assert len(set(found.values())) == len(parents) + 1
    # Stacked in columns of 12: far narrower than one column a leaf.
    assert max(across for across, _ in found.values()) < 2000 / FEW + 5


def test_a_deep_tree_needs_no_deep_recursion():
    found = places({node: node - 1 for node in range(1, 20_001)})
    assert found[20_000] == (0.0, 20_000.0)
