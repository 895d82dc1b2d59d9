"""Golden trees: what each policy does in the deterministic world, held still in JSON files.

A change of a policy, of its formulas or of its defaults shows as a diff of these.
"""

from __future__ import annotations

from typing import Any

from kopt.reward import RewardRule
from kopt.search import Search, create_search
from kopt.search.config import (
    BeamConfig,
    BestOfNConfig,
    GreedyConfig,
    MctsConfig,
    SearchConfig,
)
from kopt.testing.search_model import Outcome, drive, hard_outcome, hashed_outcome

NUM_TELLS = 64
SEED = 0
CASES: dict[str, tuple[SearchConfig, Outcome, int]] = {
    "mcts": (MctsConfig(iterations=100), hashed_outcome, 1),
    "mcts_hard": (MctsConfig(iterations=100, candidates=3), hard_outcome, 1),
    "mcts_parallel": (MctsConfig(iterations=100), hashed_outcome, 4),
    "best_of_n": (BestOfNConfig(iterations=100), hashed_outcome, 4),
    "greedy": (GreedyConfig(iterations=100), hashed_outcome, 1),
    "greedy_hard": (GreedyConfig(iterations=100), hard_outcome, 1),
    "greedy_parallel": (GreedyConfig(iterations=100), hashed_outcome, 4),
    "beam": (BeamConfig(iterations=100, idle_iterations=None), hashed_outcome, 1),
    "beam_hard": (BeamConfig(iterations=100, idle_iterations=None), hard_outcome, 1),
    "beam_parallel": (BeamConfig(iterations=100, idle_iterations=None), hashed_outcome, 4),
    "beam_idle": (BeamConfig(iterations=100), hashed_outcome, 4),
}
"""Name of the file to the config, the outcomes, and the expansions in flight."""


def golden_trees() -> dict[str, dict[str, Any]]:
    """Return every golden tree, as plain JSON values, by name."""
    return {
        name: tree_after(
            create_search(config, rule=RewardRule(), seed=SEED),
            outcome=outcome,
            in_flight=in_flight,
            num_tells=NUM_TELLS,
        )
        for name, (config, outcome, in_flight) in CASES.items()
    }


def tree_after(
    search: Search, *, outcome: Outcome, in_flight: int, num_tells: int
) -> dict[str, Any]:
    """Return what a search asked, and its tree, after so many tells, as plain JSON values.

    Floats are rounded to 9 digits: the last bits of a logarithm differ between machines.
    """
    asked = drive(search, in_flight=in_flight, max_told=num_tells, outcome=outcome)
    return {
        "in_flight": in_flight,
        "asked": [
            f"{e.parent_node} {e.mode} n={e.num_candidates} first={e.first_child} seed={e.seed}"
            for e in asked
        ],
        "nodes": [
            {
                "node": view.node,
                "parent": view.parent,
                "status": view.status,
                "reward": None if view.reward is None else round(view.reward, 9),
                "visits": view.visits,
                "value_sum": round(view.value_sum, 9),
                "in_flight": view.in_flight,
                "terminal": view.terminal,
                "depth": view.depth,
            }
            for view in search.nodes()
        ],
        "best": search.best(),
    }
