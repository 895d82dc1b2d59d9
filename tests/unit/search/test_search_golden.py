import json
from pathlib import Path

import pytest

from kopt.testing.golden_trees import CASES, golden_trees

TREES = Path(__file__).parents[2] / "golden" / "trees"


@pytest.mark.parametrize("name", CASES)
def test_the_tree_after_64_tells_is_the_golden_one(name):
    golden = json.loads((TREES / f"{name}.json").read_text(encoding="utf-8"))
    assert golden_trees()[name] == golden


def test_every_golden_tree_has_a_case():
    assert {path.stem for path in TREES.glob("*.json")} == set(CASES)


def test_the_golden_trees_show_restarts_of_greedy_repairs_of_both_and_rounds_of_a_beam():
    asked = {name: tree["asked"] for name, tree in golden_trees().items()}
    assert sum(line.startswith("0 initial") for line in asked["greedy_hard"]) >= 3
    assert any(line.split()[1] == "debug" for line in asked["greedy"])
    assert asked["beam"][0].startswith("0 initial n=4")
    assert any(line.startswith("0 initial n=1") for line in asked["beam"][1:])
    assert len(golden_trees()["beam_idle"]["nodes"]) < 65


def test_the_golden_trees_show_dead_ends_repairs_and_depth():
    nodes = golden_trees()["mcts_hard"]["nodes"]
    assert len(nodes) == 65
    assert any(node["terminal"] for node in nodes)
    assert max(node["depth"] for node in nodes) >= 3
