"""Small folders, git repositories and data sets that stand for KernelBench."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * {factor}

def get_inputs():
    return [torch.randn(4)]
"""


def problem_text(factor: int) -> str:
    return PROBLEM.format(factor=factor)


def git(folder: Path, *arguments: str) -> str:
    author = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    command = ["git", "-C", str(folder), *author, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Clone:
    """A git repository with two commits: tag `old`, branch `v0.1` (x * 1), then `main` (x * 2)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        self.write("level1/1_Add.py", factor=1)
        self.write("level2/18_Mul.py", factor=1)
        self.write("level4/1_Big.py", factor=1)
        (root / "README.md").write_text("KernelBench\n")
        self.old = self.commit()
        git(root, "tag", "old")
        git(root, "branch", "v0.1")
        self.write("level1/1_Add.py", factor=2)
        self.write("level1/2_New.py", factor=2)
        self.new = self.commit()

    def write(self, name: str, *, factor: int) -> None:
        path = self.root / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(problem_text(factor))

    def commit(self) -> str:
        git(self.root, "add", ".")
        git(self.root, "commit", "-qm", "x")
        return git(self.root, "rev-parse", "HEAD")


@pytest.fixture
def git_clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "clone")


@pytest.fixture
def problem_source() -> Callable[[int], str]:
    """Returns a function that makes a problem in the contract: x times a factor."""
    return problem_text


@pytest.fixture
def write_split() -> Callable[..., Path]:
    """Returns a function that writes (level, id, factor) rows as a Parquet file of the data set."""

    def write(path: Path, *rows: tuple[int, int, int], drop: tuple[str, ...] = ()) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(
            [
                {
                    "code": problem_text(factor),
                    "level": level,
                    "name": f"{number}_Name",
                    "problem_id": number,
                }
                for level, number, factor in rows
            ]
        )
        pq.write_table(table.drop_columns(list(drop)) if drop else table, path)
        return path

    return write
