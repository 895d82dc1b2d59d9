import importlib.metadata

import pytest
from pydantic import TypeAdapter, ValidationError

from kopt.errors import ConfigError
from kopt.reward import RewardRule
from kopt.search import SEARCHES, create_search
from kopt.search.config import BestOfNConfig, MctsConfig, PluginSearchConfig, SearchConfig
from kopt.search.policies.best_of_n import make_best_of_n

SECTIONS = TypeAdapter(SearchConfig)


def factory_of_a_plugin(config, *, rule, seed):
    """What a package's entry point names: here, our control with a smaller budget."""
    small = BestOfNConfig(iterations=config.options["rounds"], candidates=config.candidates)
    return make_best_of_n(small, rule=rule, seed=seed)


def test_the_kind_chooses_the_class_of_the_section():
    assert SECTIONS.validate_python({"kind": "mcts", "alpha": 0.3}) == MctsConfig(alpha=0.3)
    assert SECTIONS.validate_python({"kind": "best_of_n"}) == BestOfNConfig()
    assert SECTIONS.validate_python({"kind": "greedy", "restart_after": 5}).restart_after == 5
    assert SECTIONS.validate_python({"kind": "beam", "idle_iterations": None}).budget == 20


def test_a_kind_of_another_package_keeps_its_options_for_its_factory():
    section = SECTIONS.validate_python({"kind": "acme/random", "options": {"x": 1}})
    assert section == PluginSearchConfig(kind="acme/random", options={"x": 1})


@pytest.mark.parametrize("section", [{"kind": "mctss"}, {"kind": 3}, {}, {"kind": "mcts", "c": 1}])
def test_an_unknown_kind_or_key_is_refused(section):
    with pytest.raises(ValidationError):
        SECTIONS.validate_python(section)


def test_every_policy_of_ours_is_in_the_table():
    assert {"mcts", "best_of_n", "greedy", "beam"} <= set(SEARCHES.names())


def test_a_search_of_another_package_is_found_by_its_entry_point(monkeypatch):
    point = importlib.metadata.EntryPoint(
        name="acme/small", value=f"{__name__}:factory_of_a_plugin", group="kopt.searches"
    )
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", lambda _: factory_of_a_plugin)
    monkeypatch.setattr(
        "kopt.registry.entry_points", lambda **_: importlib.metadata.EntryPoints([point])
    )
    monkeypatch.setattr(SEARCHES, "_factories", dict(SEARCHES._factories))
    config = PluginSearchConfig(kind="acme/small", options={"rounds": 1}, candidates=2)
    search = create_search(config, rule=RewardRule(), seed=0)
    assert [expansion.num_candidates for expansion in search.ask(5)] == [2]


def test_an_unknown_plugin_is_one_line_that_lists_those_there_are():
    config = PluginSearchConfig(kind="acme/missing")
    with pytest.raises(ConfigError, match=r"unknown search 'acme/missing'; there are: .*mcts"):
        create_search(config, rule=RewardRule(), seed=0)
