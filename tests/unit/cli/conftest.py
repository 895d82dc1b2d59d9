"""What tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from kopt.config import load, to_plain
from kopt.data.manifest import make_manifest
from kopt.data.rundir import RunDir
from kopt.search.config import MctsConfig
from kopt.testing.fakes import InstantEvaluator, ScriptedProgrammer
from kopt.testing.small_fleet import run_in_folder, small_problem, small_tasks

CONFIG = MctsConfig(iterations=8, candidates=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of one search that ended."""
    path = tmp_path / "first"
    path.mkdir()
    run = RunDir(path)
    run.keep_problem(small_problem())
    config = load({"problem": ["set/one"], "search": CONFIG.model_dump(), "seed": [0]})
    device = {"kind": "cpu", "name": "test", "count": 1}
    run.write_manifest(
        make_manifest(to_plain(config), name="first", created_ns=0, argv=["kopt"], device=device)
    )
    run_in_folder(
        path,
        small_tasks(CONFIG),
        programmer=ScriptedProgrammer(),
        evaluator=InstantEvaluator(),
    )
    return path
