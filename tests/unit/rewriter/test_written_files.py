"""Five files as they are written: shown to readers, and a change of what is written is seen."""

from __future__ import annotations

import ast
import runpy
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
    tree = ast.parse((GOLDEN / name).read_text(encoding="utf-8"))
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert "kopt" not in imported
    assert {"tempfile", "hashlib"} <= imported or imported <= {"torch", "triton"}


def test_all_files_that_lie_there_are_shown() -> None:
    assert sorted(NAMES) == sorted(path.name for path in GOLDEN.glob("*.py"))
