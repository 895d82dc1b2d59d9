"""A crash costs its candidate alone: the next verdict comes soon, and nothing is left behind.

On a GPU too: whatever crashes on the host, and what faults, hangs or hoards on the device.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.actors.config import TimeoutConfig
from kopt.candidate import Candidate, Language
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
        "[os.write(1, b'x' * 1_000_000) for _ in range(2_100)]\nraise RuntimeError('the end')",
        ("crashed", "timed_out"),  # 2.1 GB
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


TRITON = """
import triton
import triton.language as tl


@triton.jit
def far(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK) + (1 << 40), 1.0)

"""

# The same on a GPU alone.
GPU_CRASHES = {
    "an illegal address": ("far[(1,)](x, BLOCK=128)\nreturn x", ("crashed",)),
    "an assertion on the device": (
        "return x[torch.full((9,), 1 << 40, device=x.device)]",
        ("crashed",),
    ),
    "a kernel that does not end": ("torch.cuda._sleep(1 << 50)\nreturn x", ("timed_out",)),
    "more memory than the device has": (
        "return torch.empty(1 << 45, dtype=torch.uint8, device=x.device)",
        ("crashed",),
    ),
    "all of the device's memory": (
        "held = []\n"
        "while True: held.append(torch.empty(1 << 30, dtype=torch.uint8, device=x.device))",
        ("crashed",),
    ),
    "an exit while a kernel runs": ("torch.cuda._sleep(1 << 32)\nos._exit(0)", ("crashed",)),
}
GPU_TIMEOUTS = TimeoutConfig(
    load_s=120.0, correctness_s=4.0, timing_s=30.0, reference_s=60.0
)  # endless ones take that long each
SETTLED_S = 10.0
"""Within which a device has its memory back: its driver takes a process's apart by and by."""
SLACK_BYTES = 256 << 20
"""Of device memory, less than a context takes: caches of this process grow."""


def left_behind(worker) -> tuple[int, set[str], int]:
    """Folders of scratch, files in shared memory, and the number of our descendants, all settled.

    Each child has a folder, also those that are forked ahead: whose they are changes from one
    candidate to the next, how many there are does not.
    """
    worker.settle()
    scratch = list(Path(tempfile.gettempdir()).glob("kopt-*/*"))
    return len(scratch), set(os.listdir("/dev/shm")), len(descendants(os.getpid()))


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
    return soon_of(judge_of())


@pytest.fixture(scope="module")
def on_gpu(judges, judge_type, tmp_path_factory) -> Iterator[object]:
    """An evaluator on a GPU that is not patient; `judges` says where scratch folders are."""
    made = judge_type("cuda", "strict", tmp_path_factory.mktemp("crashes"), timeouts=GPU_TIMEOUTS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def soon_on_gpu_s(on_gpu) -> float:
    """The same on a GPU."""
    return soon_of(on_gpu)


def soon_of(worker) -> float:
    next_verdict_s(worker)  # opens the session of the problem
    return max(PROMPT_S, BUSY_FACTOR * next_verdict_s(worker))


def next_verdict_s(worker) -> float:
    began_s = time.monotonic()
    made = worker.judge(PROBLEM, Candidate(source=HONEST, language="torch"))
    assert made.verdict.kind in ("correct", "cheated"), made.verdict.reason
    return time.monotonic() - began_s


def assert_costs_itself_alone(
    worker, body: str, kinds: tuple[str, ...], *, soon_s: float, before: str = ""
) -> None:
    """A crash gets its verdict, the next one comes soon, and nothing is left."""
    known = left_behind(worker)
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    language: Language = "triton" if before else "torch"
    made = worker.judge(PROBLEM, Candidate(source=before + CRASH + lines, language=language))
    assert made.verdict.kind in kinds, made.verdict.reason

    assert any(next_verdict_s(worker) < soon_s for _ in range(ATTEMPTS))
    gc.collect()
    scratch, shared, processes = left_behind(worker)
    assert scratch <= known[0]
    assert shared <= known[1] | {name for name in shared if not name.startswith("big")}
    assert processes <= known[2]


@pytest.mark.parametrize("crash", CRASHES)
def test_redteam_crash_costs_its_candidate_alone(judge_of, soon_s, crash) -> None:
    body, kinds = CRASHES[crash]
    assert_costs_itself_alone(judge_of(), body, kinds, soon_s=soon_s)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("crash", [*CRASHES, *GPU_CRASHES])
def test_redteam_crash_on_a_gpu_costs_its_candidate_alone(on_gpu, soon_on_gpu_s, crash) -> None:
    import torch

    body, kinds = {**CRASHES, **GPU_CRASHES}[crash]
    next_verdict_s(on_gpu)  # what an earlier crash cost the session is this one's not
    free_bytes, _ = torch.cuda.mem_get_info()
    before = TRITON if "far[" in body else ""
    assert_costs_itself_alone(on_gpu, body, kinds, soon_s=soon_on_gpu_s, before=before)
    until_s = time.monotonic() + SETTLED_S
    while torch.cuda.mem_get_info()[0] < free_bytes - SLACK_BYTES:
        assert time.monotonic() < until_s, "device memory is left behind"
