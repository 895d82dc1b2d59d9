"""Our own policies keep the contract of Search."""

from kopt.reward import RewardRule
from kopt.search import Search, create_search
from kopt.search.config import BeamConfig, BestOfNConfig, GreedyConfig, MctsConfig
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


class TestGreedy(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = GreedyConfig(iterations=iterations, candidates=candidates)
        return create_search(config, rule=RewardRule(), seed=seed)


class TestGreedyThatRestartsAtOnce(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = GreedyConfig(
            iterations=iterations, candidates=candidates, repair_after=1, restart_after=1
        )
        return create_search(config, rule=RewardRule(), seed=seed)


class TestBeam(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = BeamConfig(iterations=iterations, candidates=candidates, idle_iterations=None)
        return create_search(config, rule=RewardRule(), seed=seed)


class TestBeamOfOneWithoutRetries(SearchSuite):
    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = BeamConfig(
            iterations=iterations,
            candidates=candidates,
            idle_iterations=None,
            width=1,
            retries=0,
        )
        return create_search(config, rule=RewardRule(), seed=seed)


class TestBeamThatGivesUp(SearchSuite):
    stops_early = True

    def make_search(self, *, iterations: int, candidates: int, seed: int) -> Search:
        config = BeamConfig(iterations=iterations, candidates=candidates, retries=1)
        return create_search(config, rule=RewardRule(), seed=seed)
