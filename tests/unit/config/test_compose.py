import importlib.util
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from kopt.cli.compose import compose_config, config_groups, hydra_overrides
from kopt.errors import ConfigError

GOLDEN = Path(__file__).parents[2] / "golden"
REQUIRED = {
    ("programmer", "recorded"): ["programmer.run=runs/first"],
    ("programmer", "ensemble"): [
        "programmer.members=[{programmer: {kind: openai}}, {programmer: {kind: vllm}}]"
    ],
    ("variant", "kernelpro/reactive"): ["programmer=openai"],
    ("variant", "kernelopt/c1"): ["search=beam"],
    ("variant", "kernelopt/c6"): ["pipeline=agents", "programmer=openai"],
    ("pipeline", "agents"): ["programmer=openai"],
}
"""What a choice cannot do without, and has no default for."""
REQUIRED |= {("price", name): ["programmer=openai"] for name in config_groups()["price"]}
CHOICES = [(group, name) for group, names in config_groups().items() for name in names]


def error_of(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        compose_config(overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_the_composed_default_is_the_golden_file():
    spec = importlib.util.spec_from_file_location("regen_config", GOLDEN / "regen_config.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    golden = (GOLDEN / "config.yaml").read_text(encoding="utf-8")
    assert module.composed_default() == golden, "python tests/golden/regen_config.py"


@pytest.mark.parametrize(("group", "name"), CHOICES, ids=lambda part: str(part))
def test_every_choice_composes_and_validates(group: str, name: str):
    assert compose_config([f"{group}={name}", *REQUIRED.get((group, name), [])]).problem


def test_every_yaml_file_is_a_choice_or_the_root():
    root = files("kopt.conf")
    found = {item.name for item in root.iterdir() if item.name.endswith(".yaml")}
    assert found == {"config.yaml"}
    assert set(config_groups()) == {
        *("search", "programmer", "evaluate", "findings", "memory", "problems"),
        *("pipeline", "cluster", "tracker", "tasks", "experiment", "budget", "variant", "price"),
    }


def test_files_state_no_default_that_a_class_has_but_the_choice_itself():
    for group, kind in (
        ("search", "kind"),
        ("programmer", "kind"),
        ("pipeline", "kind"),
        ("findings", "feedback"),
        ("cluster", "address"),
    ):
        for name in config_groups()[group]:
            text = (files("kopt.conf") / group / f"{name}.yaml").read_text(encoding="utf-8")
            # A temperature of an experiment is no default of any class.
            assert set(yaml.safe_load(text)) - {"temperature"} == {kind}


def test_a_key_that_no_file_states_may_be_set():
    config = compose_config(["search.c_uct=0.5", "limits.wall_s=60", "reward.floor=null"])
    assert (config.search.c_uct, config.limits.wall_s, config.reward.floor) == (0.5, 60.0, None)


def test_a_group_and_a_key_of_its_choice():
    config = compose_config(["search=best_of_n", "search.iterations=4"])
    assert (config.search.kind, config.search.iterations) == ("best_of_n", 4)


def test_an_override_stands_above_an_experiment():
    config = compose_config(["experiment=quickstart", "search.iterations=2"])
    assert config.search.iterations == 2


def test_the_kernelpro_experiment_has_the_papers_rules():
    config = compose_config(["experiment=kernelpro"])
    assert config.reward.floor is None
    assert (config.reward.baseline, config.evaluate.ladder) == ("eager", "loose")
    assert (config.search.kind, config.search.budget) == ("mcts", 60)


@pytest.mark.parametrize(
    "path", ["~/x.py", "a=b.py", "my dir/x.py", "./x.py", "builtin/*", "ü.py", "/tmp/a-b_c.py"]
)
def test_paths_and_globs_need_no_quotes(path: str):
    assert compose_config([f"problem={path}"]).problem == (path,)


def test_a_list_of_problems():
    assert compose_config(["problem=[builtin/a,x.py]"]).problem == ("builtin/a", "x.py")


def test_an_unknown_choice_is_answered_with_close_ones():
    assert error_of("search=mctss") == (
        "conf search: no choice 'mctss'; did you mean mcts? "
        "there are: beam, best_of_n, greedy, mcts"
    )


def test_a_sweep_without_m_says_what_to_do():
    assert "add -m" in error_of("seed=1,2")
    assert hydra_overrides(["seed=1,2"], sweep=True) == ["++seed=1,2"]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("foo", "not key=value"),
        ("=3", "not key=value"),
        ("problem=[a", "cannot be read"),
        ("problem=???", "Missing mandatory value"),
        ("problem=${x}", "'x' not found"),
        ("serch=mcts", "did you mean search?"),
        ("search.iteration=1", "did you mean search.iterations, "),
        ("search=[mcts,best_of_n]", "takes one choice"),
        ("device=gpu", "'auto', 'cpu' or 'cuda'"),
        ("seed=x", "valid integer"),
    ],
)
def test_a_bad_override_is_one_line(override: str, words: str):
    assert words in error_of(override)


def test_a_models_price_is_a_choice_and_a_key_of_it_may_be_set():
    config = compose_config(
        ["programmer=openai", "price=gpt_4_1", "programmer.price.completion_usd_per_mtok=9"]
    )
    price = config.programmer.model_dump()["price"]
    assert price == {
        "prompt_usd_per_mtok": 2.0,
        "cached_prompt_usd_per_mtok": 0.5,
        "completion_usd_per_mtok": 9.0,
    }


def test_a_price_of_a_programmer_that_asks_no_model_is_refused():
    assert "programmer" in error_of("programmer=rewriter", "price=gpt_4_1")


def test_what_was_read_before_costs_no_more_than_what_is_new():
    for name in config_groups()["price"]:
        price = compose_config(["programmer=openai", f"price={name}"]).programmer.model_dump()
        price = price["price"]
        assert 0 < price["cached_prompt_usd_per_mtok"] <= price["prompt_usd_per_mtok"]
        assert price["prompt_usd_per_mtok"] < price["completion_usd_per_mtok"]
