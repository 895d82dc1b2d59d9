"""The policies, one file each; importing them files them in SEARCHES."""

from kopt.search.policies import best_of_n, mcts

__all__ = ["best_of_n", "mcts"]
