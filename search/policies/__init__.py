"""The policies, one file each; importing them files them in SEARCHES."""

from kopt.search.policies import beam, best_of_n, greedy, mcts

__all__ = ["beam", "best_of_n", "greedy", "mcts"]
