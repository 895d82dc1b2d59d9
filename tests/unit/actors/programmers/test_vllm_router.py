"""Which server a request goes to."""

from kopt.actors.programmers.vllm import router as router_module
from kopt.actors.programmers.vllm.router import Router


def test_the_least_loaded_server_is_taken_by_whoever_has_no_home() -> None:
    router = Router(slack=2)
    assert router.choose("", {0: 3, 1: 1, 2: 2}) == 1
    assert router.choose("", {0: 1, 1: 1}) == 0


def test_a_search_stays_with_the_server_that_has_its_prefix() -> None:
    router = Router(slack=2)
    assert router.choose("a", {0: 0, 1: 0}) == 0
    assert router.choose("a", {0: 2, 1: 0}) == 0, "two more are within the slack"
    assert router.moved == 0


def test_a_search_moves_where_its_server_is_busier_than_the_slack_allows() -> None:
    router = Router(slack=2)
    router.choose("a", {0: 0, 1: 0})
    assert router.choose("a", {0: 3, 1: 0}) == 1
    assert router.choose("a", {0: 1, 1: 1}) == 1, "and stays there"
    assert router.moved == 1


def test_new_searches_spread_over_idle_servers() -> None:
    router = Router(slack=2)
    homes = [router.choose(name, {0: 0, 1: 0, 2: 0}) for name in "abcdef"]
    assert homes == [0, 1, 2, 0, 1, 2]


def test_a_search_whose_server_is_gone_finds_another_and_stays() -> None:
    router = Router(slack=2)
    router.choose("a", {0: 0, 1: 5})
    assert router.choose("a", {1: 5, 2: 1}) == 2
    assert router.choose("a", {0: 0, 1: 0, 2: 1}) == 2


def test_searches_unused_for_long_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(router_module, "MAX_KEYS", 2)
    router = Router(slack=0)
    assert [router.choose(name, {0: 0, 1: 0}) for name in "ab"] == [0, 1]
    router.choose("a", {0: 0, 1: 0})
    router.choose("c", {0: 0})
    assert router.choose("b", {0: 0, 1: 1}) == 0, "b was forgotten, and goes to the least loaded"
