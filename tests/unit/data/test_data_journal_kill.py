"""A writer killed at any moment loses nothing that `append` returned, and duplicates nothing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

from kopt.data.journal import read_events

WRITER = """
import os, sys
from kopt.data.journal import Journal
from kopt.events import Told
from kopt.testing.fakes import ManualClock
sink = Journal(sys.argv[1], run="run", clock=ManualClock(), seal_lines=7)
while True:
    seq = sink.append("a", Told(expansion=sink.next_seq, index=0, node=1, reward=0.5))
    os.write(1, b"%d\\n" % seq)
"""
"""Says each number after `append` returned it."""


def kill_after_lines(folder: Path, count: int) -> list[int]:
    """Run the writer until it has said `count` numbers, kill it, and return all it said."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(count)]
        writer.send_signal(signal.SIGKILL)
        said += writer.stdout.readlines()
    return [int(line) for line in said if line.endswith(b"\n")]


def test_a_killed_writer_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    draw = random.Random(1)
    said: list[int] = []
    for _ in range(8):
        said += kill_after_lines(tmp_path, draw.randint(1, 120))
        records = list(read_events(tmp_path))
        assert [record.seq for record in records] == list(range(len(records)))
        assert [record.body.expansion for record in records] == list(range(len(records)))
        # What was said is there; what is there beyond it was written and not yet said.
        assert set(said) <= {record.seq for record in records}
    assert said == sorted(set(said))
