"""What the tests share that start Ray or whole runs: the Ray that they join, and a finished run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from ray.cluster_utils import Cluster

from kopt.testing.losing_cluster import new_cluster

HERE = Path(__file__).parent

SUMS = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.softmax(self.linear(x) * 2.0 + x, dim=1).sum(dim=1) + self.linear(x).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
"""
"""A problem that the rewriter makes faster on a CPU; judged in a second."""


@pytest.fixture(scope="session")
def sums() -> str:
    """The source of a problem."""
    return SUMS


QUICK = (
    "device=cpu",
    "arm=same",
    "deterministic=true",
    "search=best_of_n",
    "search.iterations=2",
    "search.candidates=2",
    "evaluate.compile=false",
    "evaluate.trials=1",
    "evaluate.cache=off",  # what is killed, or played again, has to have something to do
    "evaluate.timing.max_pairs=6",
)
"""A search of four candidates."""


@pytest.fixture(scope="session")
def quick() -> tuple[str, ...]:
    """What `first_run` was told beside its problem."""
    return QUICK


@pytest.fixture(scope="session")
def first_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str, sums: str) -> Path:
    """A whole run named `first` of `sums.py`, which is beside it: for tests that only read it.

    Made once for all of xdist's workers.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "shared_run"
    with FileLock(f"{folder}.lock"):
        if not (folder / "first" / "results.parquet").is_file():
            folder.mkdir(exist_ok=True)
            (folder / "sums.py").write_text(sums)
            command = [
                sys.executable,
                "-m",
                "kopt",
                "run",
                "problem=sums.py",
                "out=.",
                "name=first",
            ]
            done = subprocess.run(
                [*command, *QUICK], cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    return folder / "first"


_STARTED: list[tuple[Cluster, str]] = []
"""The Ray that is up, if one is, and its folder."""


@pytest.fixture(scope="module")
def running_ray() -> Cluster:
    """A Ray of one node that declares the lanes, for whoever joins one, as `cluster.address` says.

    Started once for all files of this folder that come one after the other; whoever joins it opens
    and closes what is theirs.
    """
    if not _STARTED:
        folder = tempfile.mkdtemp(prefix="kj-", dir="/tmp")  # longer, and its sockets fail
        lanes = dict.fromkeys(("programmer", "build"), 1000)
        lanes |= dict.fromkeys(("verify", "timing", "profile"), 64)
        _STARTED.append((new_cluster(folder, num_cpus=2, resources=lanes), folder))
    return _STARTED[0][0]


@pytest.hookimpl(trylast=True)  # once the fixtures have left it
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Stop the shared Ray before the tests of other folders: idle, it takes time as well."""
    if _STARTED and (nextitem is None or HERE not in nextitem.path.parents):
        cluster, folder = _STARTED.pop()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def at_a_terminal() -> Iterator[None]:
    """What is started hears Ctrl-C, also where a shell runs the tests in its background, deaf."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
