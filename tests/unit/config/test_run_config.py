import pytest

from kopt.config import load, to_plain
from kopt.errors import ConfigError
from kopt.reward import RewardRule

MINIMAL = {"problem": "builtin/softmax"}


def lines_of(mapping: dict) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(mapping)
    return str(caught.value).splitlines()


def test_one_problem_and_one_seed_may_stand_alone():
    config = load({"problem": "builtin/softmax", "seed": 7})
    assert (config.problem, config.seed) == (("builtin/softmax",), (7,))


def test_a_problem_or_seed_named_twice_counts_once():
    config = load({"problem": ["a/b", "c/d", "a/b"], "seed": [1, 2, 1]})
    assert (config.problem, config.seed) == (("a/b", "c/d"), (1, 2))


def test_the_plain_form_loads_back_equal():
    config = load({**MINIMAL, "search": {"kind": "best_of_n", "iterations": 3}, "seed": [1, 2]})
    assert load(to_plain(config)) == config


def test_the_arm_is_search_and_programmer_unless_named():
    assert load(MINIMAL).arm_name == "mcts-rewriter"
    assert load({**MINIMAL, "arm": "kernelpro"}).arm_name == "kernelpro"


def test_the_reward_section_gives_the_rule():
    config = load({**MINIMAL, "reward": {"floor": None, "baseline": "eager"}})
    assert config.reward.rule() == RewardRule(floor=None, baseline="eager")


def test_the_configuration_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        load(MINIMAL).keep_best = 5


def test_a_run_without_a_problem_is_refused():
    assert lines_of({}) == ["conf problem: a value is required"]
    assert lines_of({"problem": []})[0].startswith("conf problem: Tuple should have at least 1")


def test_a_wrong_value_names_its_key_without_the_kind_of_its_section():
    (line,) = lines_of({**MINIMAL, "search": {"kind": "mcts", "c_uct": "x"}})
    assert line.startswith("conf search.c_uct: Input should be a valid number")
    assert line.endswith("(got 'x')")


def test_a_mistyped_key_is_answered_with_the_one_that_exists():
    assert lines_of({**MINIMAL, "search": {"kind": "mcts", "iteration": 1}}) == [
        "conf search.iteration: no such key; "
        "did you mean search.iterations, search.idle_iterations?"
    ]
    assert lines_of({**MINIMAL, "serch": {}}) == ["conf serch: no such key; did you mean search?"]


def test_a_key_without_its_section_is_found_where_it_is():
    assert lines_of({**MINIMAL, "iterations": 3}) == [
        "conf iterations: no such key; did you mean search.iterations?"
    ]


def test_a_key_of_another_kind_says_so():
    (line,) = lines_of({**MINIMAL, "search": {"kind": "best_of_n", "c_uct": 1}})
    assert line == "conf search.c_uct: search=best_of_n has no such key; search=mcts has"


def test_an_unknown_kind_lists_the_kinds():
    (line,) = lines_of({**MINIMAL, "search": {"kind": "mctss"}})
    assert line.startswith(
        "conf search.kind: 'mctss' is none of 'mcts', 'best_of_n', 'greedy', 'beam'"
    )


def test_every_fault_has_its_own_line():
    wrong = {"problem": "a/b", "keep_best": 0, "device": "gpu", "seed": "x"}
    assert [line.split(":")[0] for line in lines_of(wrong)] == [
        "conf seed.0",
        "conf device",
        "conf keep_best",
    ]


def test_a_long_wrong_value_is_cut():
    (line,) = lines_of({**MINIMAL, "name": "x/" * 1000})
    assert len(line) < 300


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "-x"])
def test_a_run_name_that_is_no_folder_name_is_refused(name: str):
    (line,) = lines_of({**MINIMAL, "name": name})
    assert line.startswith("conf name:")
