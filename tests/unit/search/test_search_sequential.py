"""With one worker the tree search is the sequential algorithm, written here once more.

The second writing keeps no counts: it works everything out anew from the list of candidates, in
exact fractions, as KernelPro §3.3 and DESIGN §4 word it.
"""

import math
import random
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from kopt.reward import RewardRule, reward
from kopt.search import create_search
from kopt.search.config import MctsConfig
from kopt.testing.fakes import correct
from kopt.testing.search_model import candidate_at
from kopt.verdict import Correct, Crashed, Incorrect


class SequentialMcts:
    """The textbook: `parent`, `ok` and `value` of each candidate, and nothing else."""

    def __init__(self, config):
        self.config = config
        self.parent, self.ok, self.value = {}, {}, {}

    def children(self, node):
        return [child for child in self.parent if self.parent[child] == node]

    def subtree(self, node):
        found, todo = [], [node]
        while todo:
            at = todo.pop()
            found.append(at)
            todo += self.children(at)
        return [at for at in found if at != 0]

    def mean(self, node):
        nodes = self.subtree(node)
        return float(Fraction(sum(Fraction(self.value[at]) for at in nodes), len(nodes)))

    def is_terminal(self, node):
        below = [at for at in self.subtree(node) if at != node]
        enough = len(self.children(node)) >= self.config.terminal_repairs
        return not self.ok[node] and enough and not any(self.ok[at] for at in below)

    def select(self):
        node, config = 0, self.config
        while True:
            children = self.children(node)
            alive = [child for child in sorted(children) if not self.is_terminal(child)]
            if not alive:
                return node
            visits = len(self.subtree(node))
            bonus = config.c_uct * math.sqrt(math.log(visits))

            def uct(child, bonus=bonus):
                share = Fraction(1, len(self.subtree(child)))
                return self.mean(child) + bonus * math.sqrt(float(share))

            best = max(alive, key=lambda child: (uct(child), -child))
            share = Fraction(len(children) + 1, visits)
            virtual = self.mean(node) + bonus * math.sqrt(float(share))
            is_correct = node != 0 and self.ok[node]
            c_pw = config.c_pw_successful if is_correct else config.c_pw_failed
            if len(children) < c_pw * visits**config.alpha and virtual > uct(best):
                return node
            node = best

    def add(self, node, *, parent, verdict):
        self.parent[node] = parent
        self.ok[node] = isinstance(verdict, Correct)
        self.value[node] = reward(verdict, RewardRule())


def drawn_verdict(rng, *, share_correct):
    if rng.random() < share_correct:
        return correct(math.exp(rng.gauss(0.0, 1.0)))
    if rng.random() < 0.5:
        return Incorrect(check="values:own", detail="expected 1, found 2")
    return Crashed(stage="correctness", log="segmentation fault")


@settings(max_examples=60, deadline=None)
@given(
    draw=st.integers(0, 2**32),
    share_correct=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]),
    candidates=st.integers(1, 3),
    c_uct=st.sampled_from([0.0, 0.5, math.sqrt(2.0), 4.0]),
    alpha=st.sampled_from([0.0, 0.5, 0.8]),
    terminal_repairs=st.integers(1, 4),
)
def test_with_one_worker_the_tree_equals_the_sequential_algorithm(
    draw, share_correct, candidates, c_uct, alpha, terminal_repairs
):
    config = MctsConfig(
        iterations=20,
        candidates=candidates,
        c_uct=c_uct,
        alpha=alpha,
        terminal_repairs=terminal_repairs,
    )
    search = create_search(config, rule=RewardRule(), seed=draw)
    textbook = SequentialMcts(config)
    rng = random.Random(draw)
    for _ in range(config.iterations):
        (expansion,) = search.ask()
        assert expansion.parent_node == textbook.select()
        for index in range(expansion.num_candidates):
            verdict = drawn_verdict(rng, share_correct=share_correct)
            candidate = candidate_at(expansion, index=index)
            told = search.tell(expansion.ordinal, index, candidate=candidate, verdict=verdict)
            textbook.add(told.node, parent=expansion.parent_node, verdict=verdict)
    assert search.finished() == "budget"
    for view in search.nodes()[1:]:
        assert view.visits == len(textbook.subtree(view.node))
        assert view.terminal == textbook.is_terminal(view.node)
