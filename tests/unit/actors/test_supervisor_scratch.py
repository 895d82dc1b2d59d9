"""Scratch folders: gone with their process's end, by its own hand or by whoever starts next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

import pytest

from kopt.actors.supervisor.scratch import ScratchRoot

HOLD = """
from kopt.actors.supervisor.scratch import ScratchRoot
root = ScratchRoot()
(root.new() / "file").write_text("left")
print(root.path, flush=True)
input()
"""


@pytest.fixture
def tempdir(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(tempdir):
    """Another process that has a scratch folder; its name stands in `folder`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tempdir)},
    )
    assert process.stdout is not None
    process.folder = process.stdout.readline().strip()
    yield process
    process.kill()
    process.communicate()


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_closing_removes_everything_and_closing_again_is_no_error(tempdir) -> None:
    root = ScratchRoot()
    (root.new() / "file").write_text("x")
    root.close()
    root.close()
    assert names(tempdir) == []


def test_a_scratch_folder_is_private(tempdir) -> None:
    root = ScratchRoot()
    assert root.new().stat().st_mode & 0o077 == 0
    root.close()


def test_the_next_start_removes_what_a_killed_process_left(tempdir, holder) -> None:
    assert len(names(tempdir)) == 1
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    root = ScratchRoot()
    assert names(tempdir) == [root.path.name]
    root.close()


def test_the_next_start_leaves_the_folder_of_a_living_process_alone(tempdir, holder) -> None:
    root = ScratchRoot()
    assert len(names(tempdir)) == 2
    assert len(list(tempdir.glob(f"{holder.folder.rpartition('/')[2]}/*/file"))) == 1
    root.close()


def test_a_link_that_bears_the_name_is_not_followed(tempdir, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "file").write_text("x")
    (tempdir / "kopt-scratch-link").symlink_to(elsewhere)
    ScratchRoot().close()
    assert names(elsewhere) == ["file"]
