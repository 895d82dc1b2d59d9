"""The guide's parts out of an installed package: each found by its entry point, by `acme/name`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kopt import foreign_language
from kopt.actors.programmers.registry import PROGRAMMERS, Workplace, create_programmer
from kopt.actors.trackers.table import TRACKERS, open_tracker
from kopt.cli.compose import compose_config
from kopt.data.problems.resolve import resolve
from kopt.data.problems.source import SOURCES
from kopt.registry import Registry
from kopt.reward import REWARDS, reward
from kopt.search.searches import SEARCHES, create_search
from kopt.testing.fakes import correct
from kopt.tools import ProfilingTool, ToolRegistry
from kopt.tracker import TrackedRun

GUIDE = (Path(__file__).parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?P<fence>`{3,})python\n(?P<code>.*?)^(?P=fence)$", re.M | re.S)
ROWS = re.compile(r"^\| (?P<part>[a-z' ]+) \| .*? \| `(?P<group>kopt\.\w+)` \|", re.M)
POINTS = {
    "kopt.searches": ("acme/deepest", "Deepest"),
    "kopt.programmers": ("acme/compiler", "Compiler"),
    "kopt.rewards": ("acme/capped", "capped"),
    "kopt.problems": ("acme/matmuls", "Matmuls"),
    "kopt.tools": ("mine/small_blocks", "OneWarpBlocks"),
    "kopt.languages": ("acme/numba", "numba_cpu"),
    "kopt.trackers": ("acme/lines", "Lines"),
}
"""Group to the name of a point in it and what it names in the package."""
TABLES: tuple[Registry[object], ...] = cast(
    "tuple[Registry[object], ...]",
    (SEARCHES, PROGRAMMERS, REWARDS, SOURCES, TRACKERS, foreign_language.FOREIGN_LANGUAGES),
)


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with all of the guide's parts, as pip leaves it in a folder of sys.path."""
    site = tmp_path / "site"
    facts = site / "acme_parts-1.0.dist-info"
    facts.mkdir(parents=True)
    blocks = [match["code"] for match in BLOCK.finditer(GUIDE)]
    (site / "acme_parts.py").write_text("\n\n".join(blocks), encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-parts\nVersion: 1.0\n")
    points = [f"[{group}]\n{name} = acme_parts:{part}\n" for group, (name, part) in POINTS.items()]
    (facts / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "acme_parts", raising=False)
    for table in TABLES:
        monkeypatch.setattr(table, "_factories", dict(table._factories))
    tools: Registry[ProfilingTool] = Registry("tool", entry_point_group="kopt.tools")
    for name in ToolRegistry.names():
        if not name.startswith("mine/"):
            tools.register(name)(type(ToolRegistry.get(name)))
    monkeypatch.setattr(ToolRegistry, "_table", tools)
    monkeypatch.setattr(foreign_language, "_taken", {})


def test_every_group_of_the_guide_has_a_part_here() -> None:
    groups = {row["group"] for row in ROWS.finditer(GUIDE)}
    assert groups == {*POINTS, "kopt.rules"}  # the rewriter's own are tested with it


def test_a_search_a_reward_and_problems_are_chosen_by_name() -> None:
    config = compose_config(
        [
            *("search.kind=acme/deepest", "reward.kind=acme/capped"),
            *("problems.sources.theirs=acme/matmuls", "problem=theirs/256"),
        ]
    )
    rule = config.reward.rule()
    assert reward(correct(50.0), rule) == 1.386
    assert create_search(config.search, rule=rule, seed=0).ask(1)[0].parent_node == 0
    assert [problem.name for problem in resolve(config.problem, config.problems)] == ["mine/256"]


def test_a_programmer_is_chosen_by_name() -> None:
    config = compose_config(["programmer.kind=acme/compiler"])
    assert create_programmer(config.programmer, cast("Workplace", SimpleNamespace())).name == (
        "compiler"
    )


def test_a_tool_is_there_under_its_own_name() -> None:
    assert "mine/small_blocks" in ToolRegistry.names()
    assert ToolRegistry.get("mine/small_blocks").title == "Blocks of one warp"


def test_a_language_is_chosen_by_name() -> None:
    config = compose_config(["evaluate.languages=acme/numba"])
    assert config.evaluate.languages == ("acme/numba",)
    assert foreign_language.FOREIGN_LANGUAGES.create("acme/numba") is not None


def test_a_tracker_is_chosen_by_name(tmp_path: Path) -> None:
    config = compose_config(["tracker.kind=acme/lines"])
    tracker = open_tracker(config.tracker, TrackedRun(name="r", folder=tmp_path, config={}))
    tracker.close()
    assert (tmp_path / "scalars.jsonl").is_file()
