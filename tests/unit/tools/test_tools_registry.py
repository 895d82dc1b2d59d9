"""The registry: names, a user's own file, another package's entry point."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

import kopt.tools
from kopt import registry as registry_module
from kopt.errors import ConfigError
from kopt.registry import Registry
from kopt.testing.planted_evidence import healthy_metrics, one_kernel
from kopt.tools import ProfilingTool, ToolRegistry, diagnose, load_tool_file
from kopt.tools.registry import ENTRY_POINT_GROUP

OWN_TOOL = '''
"""Blocks of one warp."""

from kopt.tools import Analysis, ProfilingTool, ToolRegistry


@ToolRegistry.register
class OneWarpBlocks(ProfilingTool):
    name = "mine/one_warp_blocks"
    title = "Blocks of one warp"
    source = "ncu"
    required = ("launch__block_size",)
    thresholds = {"threads_up_to": 32}

    def trigger(self, view):
        return view.need("launch__block_size") <= self.thresholds["threads_up_to"]

    def analyze(self, view):
        return Analysis(
            severity="medium",
            summary="One warp a block.",
            root_cause="The number of blocks limits the resident warps.",
            recommendations=("Four warps a block.",),
            expected_improvement="1.1-1.5x",
            observed={"block_threads": view.need("launch__block_size")},
        )
'''


@pytest.fixture(autouse=True)
def own_table(monkeypatch) -> None:
    """Tools of a test go when it ends."""
    table: Registry[ProfilingTool] = Registry("tool", entry_point_group=ENTRY_POINT_GROUP)
    for name in ToolRegistry.names():
        table.register(name)(type(ToolRegistry.get(name)))
    monkeypatch.setattr(ToolRegistry, "_table", table)
    monkeypatch.setattr("kopt.tools.loading._loaded", {})


def test_the_names_are_the_fifteen_the_energy_tools_and_the_extensions() -> None:
    assert {
        *("warp_stall", "barrier_stall", "tensor_core_underutilization", "high_register_usage"),
        *("memory_coalescing", "vectorization", "occupancy_limiter", "shared_bank_conflict"),
        *("launch_overhead", "gpu_idle_gap", "sync_overhead", "memcpy_overhead"),
        *("kernel_fragmentation", "wgmma_instruction", "register_spill"),
        *("energy_bank_conflict", "energy_register_spill", "energy_uncoalesced"),
        *("energy_redundant_barrier", "energy_instruction_bloat"),
        *("sol_reached", "algorithmic_waste", "wave_quantization", "divergence"),
    } == set(ToolRegistry.names())


def test_a_user_s_file_adds_a_tool_that_is_asked_like_any(tmp_path) -> None:
    path = tmp_path / "my_tools.py"
    path.write_text(OWN_TOOL)
    assert load_tool_file(path) == ("mine/one_warp_blocks",)
    assert load_tool_file(str(path)) == ("mine/one_warp_blocks",)
    assert "mine/one_warp_blocks" in ToolRegistry.names()
    findings = diagnose(one_kernel(healthy_metrics({"launch__block_size": 32.0}))).findings
    assert [finding.tool for finding in findings] == ["mine/one_warp_blocks"]
    assert findings[0].observed == {"block_threads": 32.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "registers no tool"),
        ("def f(:\n", "SyntaxError"),
        ("import no_such_module_anywhere\n", "ModuleNotFoundError"),
        (OWN_TOOL.replace("mine/one_warp_blocks", "warp_stall"), "registered twice"),
        (OWN_TOOL.replace('    title = "Blocks of one warp"\n', ""), "has no title"),
        (OWN_TOOL.replace('source = "ncu"', 'source = "nsys"'), "source 'nsys' is none of"),
        (OWN_TOOL.replace('("launch__block_size",)', '"launch__block_size"'), "one name"),
        (OWN_TOOL.replace("def analyze", "def analyse"), "does not define analyze"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_in_one_line(tmp_path, text, words) -> None:
    path = tmp_path / "tools.py"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_tool_file(path)
    assert len(str(caught.value).splitlines()) == 1


def test_the_examples_of_the_readme_run(tmp_path) -> None:
    readme = Path(kopt.tools.__file__).with_name("README.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in readme.split("```python\n")[2:]]
    path = tmp_path / "readme_tools.py"
    path.write_text("\n\n".join(blocks))
    assert load_tool_file(path) == ("mine/expert_imbalance", "mine/one_warp_blocks")


def test_a_file_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.py: expected a Python file, found none"):
        load_tool_file(tmp_path / "absent.py")


def test_an_unknown_tool_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"unknown tool 'warp_stal'; there are: .*warp_stall"):
        ToolRegistry.get("warp_stal")


def test_a_third_party_tool_is_found_by_its_entry_point(monkeypatch, tmp_path) -> None:
    (tmp_path / "their_tools.py").write_text(OWN_TOOL.replace("mine/", "theirs/"))
    monkeypatch.syspath_prepend(tmp_path)
    points = EntryPoints(
        [
            EntryPoint(
                name="theirs/one_warp_blocks",
                value="their_tools:OneWarpBlocks",
                group=ENTRY_POINT_GROUP,
            ),
            EntryPoint(name="theirs/broken", value="no_such_module:x", group=ENTRY_POINT_GROUP),
            EntryPoint(name="theirs/no_tool", value="collections:deque", group=ENTRY_POINT_GROUP),
        ]
    )
    monkeypatch.setattr(registry_module, "entry_points", points.select)
    assert ToolRegistry.get("theirs/one_warp_blocks").title == "Blocks of one warp"
    with pytest.raises(ConfigError, match=r"'theirs/no_tool' .*expected a ProfilingTool"):
        ToolRegistry.get("theirs/no_tool")
    with pytest.raises(ConfigError, match=r"'theirs/broken' .*ModuleNotFoundError"):
        ToolRegistry.tools()
