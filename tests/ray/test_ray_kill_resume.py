"""A driver killed at any moment: the run goes on, nothing is judged twice, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.cli import main
from kopt.data.fold import fold
from kopt.data.journal import read_events
from kopt.data.record import Record
from kopt.driver.replay import replay

pytestmark = [pytest.mark.ray, pytest.mark.slow]

DEADLINE_S = 180.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kopt", *words]


def num_events(run: Path) -> int:
    return sum(1 for _ in read_events(run)) if (run / "journal").is_dir() else 0


def kill_after(words: list[str], run: Path, *, events: int) -> bool:
    """Start a driver and SIGKILL it once the journal holds that many events; False if it ended."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    give_up_s = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < give_up_s:
        if num_events(run) >= events:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.02)
    process.kill()
    process.wait()
    return False


def judged(run: Path) -> Counter[str]:
    """Candidates by how often they were really judged."""
    return Counter(
        record.body.candidate
        for record in read_events(run)
        if record.body.kind == "verdict" and not record.body.cached
    )


def made(run: Path) -> set[str]:
    return {r.body.candidate for r in read_events(run) if r.body.kind == "candidate_made"}


@pytest.mark.parametrize(
    ("kills", "joins"), [(1, True), pytest.param(4, False, marks=pytest.mark.soak)]
)
def test_a_killed_run_is_resumed_to_what_it_would_have_been(
    tmp_path: Path,
    first_run: Path,
    quick: tuple[str, ...],
    running_ray: Cluster,
    *,
    kills: int,
    joins: bool,
) -> None:
    """Joined, a run starts in half of the time."""
    problem = first_run.parent / "sums.py"
    if joins:
        quick = (*quick, f"cluster.address={running_ray.address}")
    events = num_events(first_run)

    rng = random.Random(0)
    run = tmp_path / "killed"
    words = command("run", f"problem={problem}", f"out={tmp_path}", "name=killed", *quick)
    before: list[Record] = []
    for _ in range(kills):
        if len(before) + 1 >= events:
            break
        target = rng.randrange(len(before) + 1, events)
        if not kill_after(words, run, events=target):
            break
        after = list(read_events(run))
        assert after[: len(before)] == before, "what was journalled is still there"
        before, words = after, command("resume", str(run))
    assert before, "no driver was killed"

    done = subprocess.run(command("resume", str(run)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(read_events(run))[: len(before)] == before
    assert made(run) == made(first_run)
    assert set(judged(run).values()) == {1}, "nothing journalled is judged again"
    state = fold(read_events(run))
    assert state.ended is not None
    assert replay(state)
    assert list((run / "best").glob("*/rank1.py"))


def test_a_second_driver_is_refused_and_a_terminated_one_says_how_to_go_on(
    tmp_path: Path, sums: str, quick: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    problem = tmp_path / "sums.py"
    problem.write_text(sums)
    run = tmp_path / "busy"
    words = command("run", f"problem={problem}", f"out={tmp_path}", "name=busy", *quick)
    # Long enough to be there yet when the second one, this process, was heard; it is ended before
    # its time.
    words[words.index("search.iterations=2")] = "search.iterations=40"
    driver = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    give_up_s = time.monotonic() + DEADLINE_S
    while num_events(run) < 3 and driver.poll() is None and time.monotonic() < give_up_s:
        time.sleep(0.02)
    second = main(["resume", str(run)])
    heard = capfd.readouterr().err
    driver.send_signal(signal.SIGTERM)  # as `timeout` ends a job: the process, then its group
    os.killpg(driver.pid, signal.SIGTERM)
    printed, said = driver.communicate(timeout=DEADLINE_S)
    assert second == 2
    assert "another driver" in heard or "pid" in heard
    assert "Traceback" not in heard
    assert driver.returncode == 130, said
    assert said.rstrip().splitlines()[-1] == f"kopt: interrupted; go on with `kopt resume {run}`"
    assert "(unknown)" not in said + printed, "Ray's own stack trace"
    assert "GCS" not in said + printed, "Ray outlives its driver's stop"
    assert "started again" not in said
