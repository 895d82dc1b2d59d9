"""The sub-packages are reached under one name only, the core stays light, files stay short."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kopt

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("actors", "conf", "data", "search")
PACKAGES = ("kopt", *LINKED)
MAX_LINES = 400


def python_files(*folders: str) -> list[Path]:
    """Every Python file of the folders, each once: links are not followed."""
    return [
        Path(folder) / name
        for top in folders
        for folder, _, names in os.walk(ROOT / top)
        for name in names
        if name.endswith(".py")
    ]


def imported_names(path: Path) -> set[str]:
    """The dotted names that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("name", LINKED)
def test_kopt_links_to_the_top_level_folder(name: str) -> None:
    link = ROOT / "kopt" / name
    assert link.is_symlink()
    assert link.resolve() == ROOT / name


def test_no_file_imports_a_folder_by_its_bare_name() -> None:
    files = python_files(*PACKAGES, "scripts", "tests")
    bare = {
        str(path): name
        for path in files
        for name in imported_names(path)
        if name.split(".")[0] in LINKED
    }
    assert bare == {}


@pytest.mark.parametrize("path", python_files(*PACKAGES, "scripts"), ids=lambda p: p.name)
def test_no_file_is_longer_than_a_reader_can_hold(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_the_core_imports_nothing_heavy() -> None:
    code = (
        "import sys, kopt, kopt.config, kopt.driver.loop, kopt.search.searches, kopt.data.fold;"
        "print(sorted({'ray', 'torch', 'triton', 'vllm', 'hydra', 'omegaconf'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_what_drives_a_fleet_names_its_workers_without_what_they_compute_with() -> None:
    code = (
        "import sys, kopt.cli.fleet_session, kopt.cli.session\n"
        "from kopt.actors.programmers import agents, openai, postbox, recorded, rewriter, vllm\n"
        "print(sorted({'torch', 'triton', 'vllm', 'pandas', 'scipy', 'sympy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_public_names_are_a_decision() -> None:
    assert sorted(kopt.__all__) == [
        "Candidate",
        "Cheated",
        "CompileFailed",
        "Correct",
        "Crashed",
        "Evaluation",
        "Expansion",
        "Incorrect",
        "Problem",
        "TimedOut",
        "Verdict",
        "__version__",
        "load",
    ]
