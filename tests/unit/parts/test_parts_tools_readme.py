"""The tools of kopt/tools/README.md, put into a file as its text says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kopt.registry import Registry
from kopt.tools import ProfilingTool, ToolRegistry, load_tool_file

README = Path(__file__).parents[3] / "kopt" / "tools" / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def test_the_readme_s_tools_register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table: Registry[ProfilingTool] = Registry("tool", entry_point_group="kopt.tools")
    for name in ToolRegistry.names():
        table.register(name)(type(ToolRegistry.get(name)))
    monkeypatch.setattr(ToolRegistry, "_table", table)
    _, *tools = BLOCK.findall(README.read_text(encoding="utf-8"))
    path = tmp_path / "mine.py"
    path.write_text("\n\n".join(tools), encoding="utf-8")
    assert load_tool_file(path) == ("mine/expert_imbalance", "mine/one_warp_blocks")
