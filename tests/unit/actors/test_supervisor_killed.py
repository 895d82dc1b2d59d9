"""A supervisor that is killed: what it started ends by itself, and its scratch goes at the next."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kopt.actors.supervisor.scratch import ScratchRoot

END_MS = 20_000

JUDGE = """
import sys
from kopt.actors.config import EvaluateConfig, TimeoutConfig
from kopt.actors.device_worker import DeviceWorker
from kopt.actors.builder import nothing_to_build
from kopt.candidate import Candidate
from kopt.problem import Problem
from pathlib import Path

TEXT = '''
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(8, 8)]
'''
LINGER = '''        import os, subprocess
        subprocess.Popen(["setsid", "sleep", "97411"])
        subprocess.Popen(["sleep", "97411"])
        os.write(1, b"at work")
        while True:
            pass
'''
text = TEXT.replace("class Model(", "class ModelNew(").replace("        return", LINGER + "#")
cache = Path(sys.argv[1])
timeouts = TimeoutConfig(correctness_s=300.0)
config = EvaluateConfig(secret=1, compile=False, trials=1, timeouts=timeouts)
worker = DeviceWorker(config, "cpu", 0, str(cache))
candidate = Candidate(source=text, language="torch")
built = nothing_to_build(candidate, cache_dir=cache)
worker.evaluate(Problem(name="plus", source=TEXT), candidate, built)
"""


def children_of(pid: int) -> list[int]:
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listing.read_text(encoding="ascii").split()]


def at_work(pids: list[int]) -> bool:
    """Whether both sleep: the supervisor's own command line holds that word too, and so does that
    of whatever it forks until another program runs there."""
    sleeping = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile
        sleeping += words[:2] == [b"sleep", b"97411"]
    return sleeping == 2


@pytest.fixture
def killed(tmp_path, monkeypatch, running_with):
    """The folder of scratch folders of a supervisor that was killed while a candidate ran."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", JUDGE, str(tmp_path / "cache")],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
    )
    try:
        while not at_work(running_with("97411")):
            assert process.poll() is None, "the supervisor ended by itself"
            time.sleep(0.02)
        zygotes = [os.pidfd_open(pid) for pid in children_of(process.pid)]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    ended = select.poll()
    for zygote in zygotes:
        ended.register(zygote, select.POLLIN)
    while zygotes:
        done = ended.poll(END_MS)
        assert done, "a zygote outlives its supervisor"
        for zygote, _ in done:
            ended.unregister(zygote)
            zygotes.remove(zygote)
            os.close(zygote)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


def test_a_killed_supervisor_leaves_no_process_and_its_scratch_to_the_next(
    killed, running_with
) -> None:
    assert running_with("97411") == []
    assert len(list(killed.iterdir())) == 1
    ScratchRoot().close()
    assert list(killed.iterdir()) == []
