"""Five files as they are written: shown to readers, and a change of what is written is seen."""

from __future__ import annotations

import ast
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden" / "rewriter"
REGEN = runpy.run_path(str(GOLDEN.parent / "regen_written.py"))
NAMES = [name for name, *_ in REGEN["SHOWN"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_shown_file_is_what_its_plan_is_written_to(name: str) -> None:
    written_again: Callable[[str], str] = REGEN["written_again"]
    assert (GOLDEN / name).read_text(encoding="utf-8") == written_again(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_shown_file_needs_no_kopt(name: str) -> None:
    nodes = list(ast.walk(ast.parse((GOLDEN / name).read_text(encoding="utf-8"))))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "." for node in nodes if isinstance(node, ast.ImportFrom)]
    tops = {module.partition(".")[0] for module in modules}
    assert tops <= {"torch", "triton", *sys.stdlib_module_names}


def test_all_files_that_lie_there_are_shown() -> None:
    assert sorted(NAMES) == sorted(path.name for path in GOLDEN.glob("*.py"))
