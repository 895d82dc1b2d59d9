"""Whom a process started is found by /proc, and killed without harm to anybody else."""

from __future__ import annotations

import signal
import subprocess
import sys

from kopt.actors.descendants import descendants, kill_all

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
"""


def test_children_and_theirs_are_found_and_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        grandchild = int(parent.stdout.readline())
        found = descendants()
        assert {parent.pid, grandchild} <= set(found)
        kill_all([parent.pid, grandchild])
        assert parent.wait(timeout=30) == -signal.SIGKILL


def test_what_is_gone_is_passed_over() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait(timeout=30)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as living:
        kill_all([child.pid, living.pid])
        assert living.wait(timeout=30) == -signal.SIGKILL
