from kopt.reward import RewardRule
from kopt.search import Told, create_search
from kopt.search.config import BestOfNConfig
from kopt.search.telling import tell_candidate
from kopt.testing.fakes import correct


class OlderSearch:
    """What a package may have that was written before searches were told strategies."""

    def __init__(self):
        self.heard = []

    def tell(self, ordinal, index, *, candidate, verdict):
        self.heard.append((ordinal, index, candidate))
        return Told(node=1, reward=0.5)


def test_a_search_hears_the_strategy():
    search = create_search(BestOfNConfig(), rule=RewardRule(), seed=0)
    search.ask()
    tell_candidate(search, 0, 1, candidate="a", verdict=correct(2.0), strategy="tile")
    assert search.node(2).strategy == "tile"


def test_a_search_of_an_older_package_is_told_without_it():
    search = OlderSearch()
    told = tell_candidate(search, 0, 1, candidate="a", verdict=correct(2.0), strategy="tile")
    assert told == Told(node=1, reward=0.5)
    assert search.heard == [(0, 1, "a")]
