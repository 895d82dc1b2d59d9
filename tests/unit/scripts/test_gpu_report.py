"""The report of a GPU suite names the code that was run: a commit, and whether it was all."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "gpu_report.py"


def test_a_commit_with_changes_is_called_dirty(tmp_path: Path) -> None:
    commit_of = runpy.run_path(str(SCRIPT))["_commit"]
    assert commit_of(tmp_path) is None, "no checkout"

    def git(*words: str) -> str:
        told = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@e", *words)
        return subprocess.run(told, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "one.py").write_text("ONE = 1\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    commit = git("rev-parse", "HEAD")
    assert commit_of(tmp_path) == commit
    (tmp_path / "one.py").write_text("ONE = 2\n")
    assert commit_of(tmp_path) == f"{commit}+dirty"
