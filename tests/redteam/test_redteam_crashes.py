"""A crash costs its candidate alone: the next verdict comes soon, and nothing is left behind."""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path

import pytest

from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = pytest.mark.alone

PROMPT_S = 2.0
"""Within which the next verdict comes, on the best of ATTEMPTS; on a host that is so busy that one
takes longer anyway, within BUSY_FACTOR of what it took before the crash."""
BUSY_FACTOR = 1.5
ATTEMPTS = 3

PROBLEM = Problem(
    name="affine",
    source=(Path(__file__).parent / "problems" / "affine.py").read_text(encoding="utf-8"),
)
HONEST = PROBLEM.source.replace("class Model(", "class ModelNew(")
CRASH = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(features))
        self.shift = torch.nn.Parameter(torch.zeros(features))

    def forward(self, x):
        import os
"""

# What forward does, and the verdicts that are right.
CRASHES = {
    "a segmentation fault": ("import ctypes; ctypes.string_at(8)", ("crashed",)),
    "an abort": ("os.abort()", ("crashed",)),
    "an exit": ("os._exit(0)", ("crashed",)),
    "an endless loop": ("while True: pass", ("timed_out",)),
    "a loop that no signal ends": (
        "import signal\n"
        "[signal.signal(n, signal.SIG_IGN) for n in range(1, 32) if n not in (9, 19)]\n"
        "while True: pass",
        ("timed_out",),
    ),
    "100 GB of memory": ("torch.empty(100 << 30, dtype=torch.uint8).fill_(1)", ("crashed",)),
    "100 GB of memory in pieces": (
        "held = []\nwhile True: held.append(torch.empty(1 << 28))",
        ("crashed",),
    ),
    "a flood of output": (
        "[os.write(1, b'x' * 1_000_000) for _ in range(300)]\nraise RuntimeError('the end')",
        ("crashed",),
    ),
    "files without end": (
        "for number in range(9):\n"
        "    with open(f'big{number}', 'wb') as file:\n"
        "        os.posix_fallocate(file.fileno(), 0, 1 << 30)\n"
        "raise RuntimeError('nine gigabytes')",
        ("crashed",),
    ),
    "shared memory without end": (
        "for number in range(9):\n"
        "    with open(f'/dev/shm/big{number}', 'wb') as file:\n"
        "        os.posix_fallocate(file.fileno(), 0, 1 << 30)\n"
        "raise RuntimeError('nine gigabytes')",
        ("crashed",),
    ),
    "threads without end": (
        "import threading, time\n"
        "for _ in range(5000):\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "raise RuntimeError('five thousand threads')",
        ("crashed",),
    ),
    "a tree of processes": (
        "for _ in range(7):\n"  # 2**7 processes, and no more
        "    os.fork()\n"
        "import time\n"
        "time.sleep(60)",
        ("timed_out", "crashed"),
    ),
    "processes in sessions of their own": (
        "import subprocess\n"
        "for _ in range(20):\n"
        "    subprocess.Popen(['setsid', 'sleep', '60'])\n"
        "os._exit(3)",
        ("crashed",),
    ),
}


def left_behind() -> tuple[set[str], set[str], int]:
    """Files in scratch and shared memory, and the number of our descendants."""
    scratch = {str(path) for path in Path(tempfile.gettempdir()).glob("kopt-*/*")}
    return scratch, set(os.listdir("/dev/shm")), len(descendants(os.getpid()))


def descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
        except OSError:
            continue  # ended meanwhile
        if fields[0] != "Z":
            parents[int(entry.parent.name)] = int(fields[1])
    found: set[int] = set()
    wave = {pid}
    while wave:
        wave = {child for child, parent in parents.items() if parent in wave} - found
        found |= wave
    return found


@pytest.fixture(scope="module")
def soon_s(judge_of) -> float:
    """Seconds within which a verdict comes here."""
    next_verdict_s(judge_of())  # opens the session of the problem
    return max(PROMPT_S, BUSY_FACTOR * next_verdict_s(judge_of()))


def next_verdict_s(worker) -> float:
    began_s = time.monotonic()
    made = worker.judge(PROBLEM, Candidate(source=HONEST, language="torch"))
    assert made.verdict.kind in ("correct", "cheated"), made.verdict.reason
    return time.monotonic() - began_s


@pytest.mark.parametrize("crash", CRASHES)
def test_redteam_crash_costs_its_candidate_alone(judge_of, soon_s, crash) -> None:
    body, kinds = CRASHES[crash]
    worker = judge_of()
    before = left_behind()
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    made = worker.judge(PROBLEM, Candidate(source=CRASH + lines, language="torch"))
    assert made.verdict.kind in kinds, made.verdict.reason

    assert any(next_verdict_s(worker) < soon_s for _ in range(ATTEMPTS))
    gc.collect()
    scratch, shared, processes = left_behind()
    assert scratch <= before[0]
    assert shared <= before[1] | {name for name in shared if not name.startswith("big")}
    assert processes <= before[2]
