"""Our own policies keep the contract of Search."""

from kopt.reward import RewardRule
from kopt.search import Search, create_search
from kopt.search.config import BestOfNConfig, MctsConfig
from kopt.testing.search_suite import SearchSuite


class TestMcts(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = MctsConfig(iterations=iterations, candidates=candidates)
        return create_search(config, rule=RewardRule(), seed=seed)


class TestMctsThatIsGreedy(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = MctsConfig(iterations=iterations, candidates=candidates, c_uct=0.0, alpha=1.0)
        return create_search(config, rule=RewardRule(), seed=seed)


class TestMctsThatBarelyWidens(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = MctsConfig(
            iterations=iterations, candidates=candidates, alpha=0.0, terminal_repairs=1
        )
        return create_search(config, rule=RewardRule(), seed=seed)


class TestBestOfN(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = BestOfNConfig(iterations=iterations, candidates=candidates)
        return create_search(config, rule=RewardRule(), seed=seed)
