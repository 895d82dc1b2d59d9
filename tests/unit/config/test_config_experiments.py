"""The shipped experiments: each composes, with its paper's tasks, arms, seeds and constants."""

from __future__ import annotations

import pytest

from kopt.cli.compose import compose_config, config_groups, hydra_overrides, swept_by_experiment
from kopt.config import RunConfig
from kopt.errors import ConfigError


def level(config: RunConfig, number: int) -> list[int]:
    prefix = f"kernelbench/level{number}/"
    return [int(name.removeprefix(prefix)) for name in config.problem if name.startswith(prefix)]


def test_every_experiment_of_the_papers_is_there() -> None:
    assert set(config_groups()["experiment"]) == {
        *("quickstart", "kernelpro", "kernelbench"),
        *(f"kernelpro/{name}" for name in ("main", "tools", "search", "orchestration", "memory")),
        *(f"kernelpro/{name}" for name in ("energy", "inference", "veomni")),
        *("kernelopt/main", "kernelopt/ablation"),
        *(f"kernelbench/{name}" for name in ("level1", "level2", "level3", "all")),
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("kernelpro/tools", "--pool --over-seeds best --cap 25"),  # App. C.1
        ("kernelpro/memory", "--pool --over-seeds best --cap 25"),  # App. D
        ("kernelpro/orchestration", "--pool --over-seeds best"),  # App. F: no cap is printed
        ("kernelopt/ablation", ""),
    ],
)
def test_an_experiments_tables_count_as_its_paper_does(name: str, words: str) -> None:
    assert compose_config([f"experiment={name}"]).fleet.stats.words == words


def test_kernelpros_42_tasks_are_those_it_prints() -> None:
    config = compose_config(["experiment=kernelpro/tools"])
    # App. C.1: 19 + 16 + 7.
    assert [len(level(config, number)) for number in (1, 2, 3)] == [19, 16, 7]
    assert level(config, 3) == [28, 30, 31, 32, 43, 44, 50]
    assert len(config.problem) == 42


def test_kernelopts_50_problems_have_the_strata_it_prints() -> None:
    config = compose_config(["experiment=kernelopt/ablation"])
    assert [len(level(config, number)) for number in (1, 2, 3)] == [20, 20, 10]
    c6 = compose_config(["experiment=kernelopt/ablation", "variant=kernelopt/c6"])
    assert level(c6, 2) == level(config, 2)
    assert len(c6.problem) == 20


@pytest.mark.parametrize(
    ("name", "policy", "iterations", "seeds"),
    [
        ("main", "mcts", 30, (0, 1, 2)),
        ("tools", "greedy", 30, (0, 1, 2)),
        ("orchestration", "greedy", 30, (0, 1)),
        ("memory", "greedy", 25, (0,)),
    ],
)
def test_kernelpros_constants(
    name: str, policy: str, iterations: int, seeds: tuple[int, ...]
) -> None:
    config = compose_config([f"experiment=kernelpro/{name}"])
    assert (config.search.kind, config.search.iterations) == (policy, iterations)
    assert (config.search.candidates, config.seed) == (2, seeds)
    assert (config.evaluate.ladder, config.reward.baseline, config.reward.floor) == (
        "loose",
        "eager",
        None,
    )


def test_an_experiment_of_arms_says_what_it_sweeps() -> None:
    assert swept_by_experiment(["experiment=kernelpro/search"]) == ["variant", "programmer"]
    assert swept_by_experiment(["experiment=kernelopt/main"]) == []
    assert swept_by_experiment(["search=mcts"]) == []


def test_five_temperatures() -> None:
    temperatures = [
        getattr(compose_config([f"programmer={name}"]).programmer, "temperature", None)
        for name in config_groups()["programmer"]
        if name.startswith("openai_t")
    ]
    assert temperatures == [0.2, 0.33, 0.45, 0.57, 0.7]


@pytest.mark.parametrize(
    ("variant", "keys"),
    [
        ("kernelopt/c0", {}),
        ("kernelopt/c1", {"search.width": 1}),
        (
            "kernelopt/c2",
            {"memory.search": "off", "memory.experience": "off", "memory.guidelines": "off"},
        ),
        ("kernelopt/c3", {"compiled.performance_gate": "off"}),
        ("kernelopt/c4", {"findings.feedback": "none"}),
        ("kernelopt/c5", {"search.iterations": 1}),
    ],
)
def test_an_arm_of_kernelopts_ablation_differs_in_one_component(
    variant: str, keys: dict[str, object]
) -> None:
    full = compose_config(["experiment=kernelopt/ablation"]).model_dump()
    arm = compose_config(["experiment=kernelopt/ablation", f"variant={variant}"]).model_dump()
    assert arm.pop("arm") == variant[-2:].upper()
    full.pop("arm")
    for key, value in keys.items():
        section, name = key.split(".")
        assert arm[section].pop(name) == value
        assert full[section].pop(name) != value
    assert arm == full


@pytest.mark.parametrize("name", ["tools", "search", "orchestration", "memory", "main"])
def test_a_small_budget_asks_no_model_and_leaves_the_arms_as_they_are(name: str) -> None:
    words = [f"experiment=kernelpro/{name}"]
    full = compose_config(words)
    # What its sweep says for the programmer, as `-m` does.
    small = compose_config([*words, "budget=small", "programmer=rewriter"])
    assert (small.programmer.kind, small.profile_analysis) == ("rewriter", "off")
    assert all(problem.startswith("builtin/") for problem in small.problem)
    assert (small.search.iterations, small.search.candidates, small.seed) == (2, 2, (0,))
    assert small.search.kind == full.search.kind
    assert (small.evaluate.ladder, small.reward, small.findings, small.memory) == (
        full.evaluate.ladder,
        full.reward,
        full.findings,
        full.memory,
    )


def test_an_arm_stands_above_the_small_budget() -> None:
    # What its sweep says for the programmer and the pipeline, as `-m` does.
    words = ["experiment=kernelopt/ablation", "budget=small"]
    words += ["programmer=rewriter", "pipeline=single"]
    assert compose_config([*words, "variant=kernelopt/c5"]).search.iterations == 1
    assert compose_config([*words, "variant=kernelopt/c0"]).search.iterations == 2


def test_an_unknown_experiment_is_answered_with_close_ones() -> None:
    with pytest.raises(ConfigError, match="did you mean kernelpro/tools"):
        compose_config(["experiment=kernelpro/tool"])


def test_contradictory_overrides_are_named() -> None:
    with pytest.raises(ConfigError, match=r"'seed=0' and 'seed=1' contradict each other"):
        compose_config(["seed=0", "seed=1"])
    with pytest.raises(ConfigError, match="contradict"):
        hydra_overrides(["search=mcts", "search=greedy"], sweep=True)
    assert compose_config(["seed=1", "seed=1"]).seed == (1,)


@pytest.mark.parametrize(
    "override",
    ["search.iterations=0", "limits.candidates=0", "limits.wall_s=0", "limits.gpu_s=0"],
)
def test_a_budget_of_nothing_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match="greater than"):
        compose_config([override])
