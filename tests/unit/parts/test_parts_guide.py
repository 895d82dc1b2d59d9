"""CONTRIBUTING.md's parts of one's own, each put into `mine.py` and used as its text says."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kopt import foreign_language
from kopt.actors.programmers.registry import Workplace, create_programmer
from kopt.actors.trackers.table import open_tracker
from kopt.cli.compose import compose_config
from kopt.config import RunConfig, load, to_plain
from kopt.data.problems.resolve import resolve
from kopt.errors import ConfigError
from kopt.expansion import Expansion
from kopt.ports import Target, WriteRequest
from kopt.problem import Problem
from kopt.prompts.labels import declared_language
from kopt.prompts.language import language_of
from kopt.prompts.target_text import languages_text
from kopt.registry import Registry
from kopt.reward import RewardRule, reward
from kopt.search.searches import create_search, restore_search
from kopt.static_check import static_check
from kopt.testing.fakes import correct
from kopt.testing.planted_evidence import healthy_metrics, one_kernel
from kopt.testing.search_suite import SearchSuite
from kopt.tools import ProfilingTool, ToolRegistry, diagnose, load_tool_file
from kopt.tracker import TrackedRun, Tracker

GUIDE = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### A (?P<part>[a-z ]+)\n(?P<text>.*?)(?=^##)", re.M | re.S)
BLOCK = re.compile(r"^(?P<fence>`{3,})python\n(?P<code>.*?)^(?P=fence)$", re.M | re.S)
CPU = Target(device="cpu", name="a CPU", arch="x86_64", languages=("cpp", "torch"))


def parts() -> dict[str, str]:
    """The code of each part of the guide, by the part's name."""
    found: dict[str, str] = {}
    for section in SECTION.finditer(GUIDE):
        block = BLOCK.search(section["text"])
        assert block is not None, section["part"]
        found[section["part"]] = block["code"]
    return found


@pytest.fixture
def mine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`mine.py` with the part that the test's parameter names, in the folder it runs in."""
    path = tmp_path / "mine.py"
    path.write_text(parts()[request.param], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return path


def of(part: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mine", [part], indirect=True)


def test_the_guide_shows_one_of_each_part_in_some_ten_lines() -> None:
    found = parts()
    assert sorted(found) == [
        *("language", "problem source", "profiling tool", "programmer", "reward", "search"),
        "tracker",
    ]
    assert all(len(code.strip().splitlines()) <= 40 for code in found.values())


@of("search")
def test_a_search(mine: Path) -> None:
    config = compose_config(["search.kind=mine.py:Deepest", "search.iterations=5"])
    assert config.search.kind == f"{mine}:Deepest"
    assert config.arm_name == "Deepest-rewriter"
    assert load(to_plain(config)) == config  # as a manifest gives it back
    search = create_search(config.search, rule=RewardRule(), seed=0)

    class TestDeepest(SearchSuite):
        def make_search(self, *, iterations: int, candidates: int, seed: int) -> Any:
            plain = {**config.search.model_dump(), "iterations": iterations}
            section = type(config.search).model_validate({**plain, "candidates": candidates})
            return create_search(section, rule=RewardRule(), seed=seed)

    TestDeepest().test_a_sequential_search_tells_exactly_its_budget()
    (first,) = search.ask(1)
    told = search.tell(first.ordinal, 0, candidate="c", verdict=correct(2.0))
    search.cancel(first.ordinal)
    (second,) = search.ask(1)
    assert (first.parent_node, second.parent_node) == (0, told.node)  # always the deepest
    copy = restore_search(search.snapshot(), config=config.search, rule=RewardRule(), seed=0)
    assert copy.snapshot() == search.snapshot()


@of("programmer")
def test_a_programmer(mine: Path) -> None:
    config = compose_config(["programmer.kind=mine.py:Compiler"])
    programmer = create_programmer(config.programmer, cast("Workplace", SimpleNamespace()))
    reference = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    problem = Problem(name="p", source=f"{reference}        return x + 1\n")
    asked = Expansion(
        ordinal=0, parent_node=0, parent=None, mode="seed", num_candidates=1, first_child=1, seed=0
    )
    request = WriteRequest(
        problem=problem, target=CPU, search="s", arm="a", seed=0, expansion=asked, parent=None
    )
    answer = asyncio.run(programmer.write(request))
    (candidate,) = answer.candidates
    assert static_check(candidate.source, language=candidate.language).passed
    made: dict[str, Any] = {}
    exec(candidate.source, made)
    assert made["ModelNew"]() is not None
    asyncio.run(programmer.close())


@of("reward")
def test_a_reward(mine: Path) -> None:
    config = compose_config(["reward.kind=mine.py:capped"])
    rule = config.reward.rule()
    assert reward(correct(2.0), rule) == pytest.approx(0.6931, abs=1e-4)  # ln 2
    assert reward(correct(50.0), rule) == 1.386


@of("reward")
def test_a_reward_that_is_no_number_is_refused(mine: Path) -> None:
    mine.write_text("def nothing(verdict, rule):\n    return None\n")
    with pytest.raises(ConfigError, match="expected a finite number, found None"):
        reward(correct(2.0), RewardRule(kind=f"{mine}:nothing"))


@of("problem source")
def test_a_problem_source(mine: Path) -> None:
    config = compose_config(["problems.sources.mine=mine.py:Matmuls", "problem='mine/*'"])
    found = resolve(config.problem, config.problems)
    assert [problem.name for problem in found] == ["mine/256", "mine/1024"]
    compile(found[0].source, "problem", "exec")
    taken = compose_config(["problems.sources.builtin=mine.py:Matmuls", "problem=builtin/a"])
    with pytest.raises(ConfigError, match="there is a set of that name"):
        resolve(taken.problem, taken.problems)


@of("profiling tool")
def test_a_profiling_tool(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table: Registry[ProfilingTool] = Registry("tool", entry_point_group="kopt.tools")
    for name in ToolRegistry.names():
        table.register(name)(type(ToolRegistry.get(name)))
    monkeypatch.setattr(ToolRegistry, "_table", table)
    assert compose_config(["tools.files=mine.py"]).tools.files == ("mine.py",)
    assert load_tool_file(mine) == ("mine/small_blocks",)
    evidence = one_kernel(healthy_metrics({"launch__block_size": 32.0}))
    assert [each.tool for each in diagnose(evidence).findings] == ["mine/small_blocks"]


def language_config(mine: Path) -> RunConfig:
    return compose_config([f"evaluate.languages={mine.name}:numba_cpu"])


@of("language")
def test_a_language(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_language, "_taken", {})
    source = "import numba\n\n\nclass ModelNew: ...\n"
    assert language_of(source) == "torch"
    config = language_config(mine)
    assert language_of(source) == "numba"
    assert declared_language("language: numba\n") == "numba"
    monkeypatch.setattr(foreign_language, "_is_installed", lambda module: module == "numba")
    target = foreign_language.with_foreign(CPU, config.evaluate.languages)
    assert target.languages == ("numba", "cpp", "torch")
    assert "@numba.njit(parallel=True)" in languages_text(target)
    on_gpu = Target(device="cuda", name="a GPU", arch="sm_90", languages=("triton",))
    assert foreign_language.with_foreign(on_gpu, config.evaluate.languages) == on_gpu


@of("language")
def test_a_language_whose_package_is_missing_is_not_offered(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_language, "_taken", {})
    mine.write_text(parts()["language"].replace('("numba",)', '("no_such.package",)'))
    config = language_config(mine)
    assert foreign_language.with_foreign(CPU, config.evaluate.languages) == CPU


@of("language")
def test_a_language_may_not_take_one_of_our_names(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_language, "_taken", {})
    mine.write_text(parts()["language"].replace('name="numba"', 'name="triton"'))
    with pytest.raises(ConfigError, match="none of triton"):
        language_config(mine)


@of("tracker")
def test_a_tracker(mine: Path, tmp_path: Path) -> None:
    config = compose_config(["tracker.kind=mine.py:Lines"])
    run = TrackedRun(name="r", folder=tmp_path, config={})
    tracker = open_tracker(config.tracker, run)
    assert isinstance(tracker, Tracker)
    tracker.log({"candidates": 2.0}, step=2)
    tracker.close()
    line = json.loads((tmp_path / "scalars.jsonl").read_text())
    assert line == {"step": 2, "candidates": 2.0}
