"""Candidates judged at the same time: each verdict is what it would be alone, and no one waits."""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.actors.supervisor.supply import Supply
from kopt.candidate import Candidate
from kopt.errors import WorkerLost
from kopt.evaluation import Evaluation
from kopt.problem import Problem

pytestmark = pytest.mark.slow

CORRECTNESS_S = 8.0
CONFIG = EvaluateConfig(
    secret=11,
    compile=False,
    trials=1,
    memory_gib=4.0,
    timeouts=TimeoutConfig(correctness_s=CORRECTNESS_S, timing_s=20.0),
    timing=TimingConfig(min_pairs=4, max_pairs=4),
)
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(512, 512)]
"""
PROBLEM = Problem(name="doubled", source=SOURCE)
SOON_S = 10.0
SLACK_S = 0.15
"""Of a candidate's time, what its stages need not account for, beside 5 %."""


class Crowd:
    """A supervisor that judges three at a time."""

    def __init__(self, cache_dir: Path) -> None:
        supply = Supply(in_flight=3, warm_children=2)
        self.cache_dir = cache_dir
        self.supervisor = Supervisor(CONFIG, device="cpu", cache_dir=cache_dir, supply=supply)
        self.threads = ThreadPoolExecutor(3)

    def begin(self, body: str, *, before: str = "") -> Future[tuple[Evaluation, float]]:
        text = SOURCE.replace("class Model(", "class ModelNew(")
        text = text.replace("        return torch.relu(x) * 2", textwrap.indent(body, " " * 8))
        candidate = Candidate(source=before + text, language="torch")
        return self.threads.submit(self._judge, candidate)

    def _judge(self, candidate: Candidate) -> tuple[Evaluation, float]:
        began_s = time.monotonic()
        build_dir = self.cache_dir / "build" / candidate.candidate_id
        build_dir.mkdir(parents=True, exist_ok=True)
        made = self.supervisor.evaluate(PROBLEM, candidate, build_dir=build_dir)
        return made, time.monotonic() - began_s


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> Iterator[Crowd]:
    made = Crowd(tmp_path_factory.mktemp("cache"))
    opened, _ = made.begin("return torch.relu(x) * 2").result(120.0)
    assert opened.verdict.kind == "correct", opened.verdict.reason
    yield made
    made.threads.shutdown()
    made.supervisor.close()


RIGHT = "return torch.relu(x) * {factor} / {factor} * 2"
BODIES = {
    "correct": RIGHT.format(factor=4),
    "incorrect": "return torch.relu(x) * 3",
    "crashed": "import ctypes; ctypes.string_at(8)",
}


def test_verdicts_are_each_candidates_own_and_their_seconds_add_up(crowd) -> None:
    bodies = [*BODIES.items(), *BODIES.items()]
    judged = [crowd.begin(f"{body}  # {n}") for n, (_, body) in enumerate(bodies)]
    outcomes = [each.result(120.0) for each in judged]
    assert [made.verdict.kind for made, _ in outcomes] == [kind for kind, _ in bodies]
    for made, wall_s in outcomes:
        assert sum(made.timeline_s.values()) == pytest.approx(wall_s, rel=0.05, abs=SLACK_S)
        assert {"prepared", "verify_queued", "forked", "ended"} <= made.timeline_s.keys()
        assert ("timed" in made.timeline_s) == (made.verdict.kind == "correct")
        assert ("timing_queued" in made.timeline_s) == (made.verdict.kind == "correct")


@pytest.mark.soak
def test_a_candidate_that_hangs_keeps_no_other_from_being_timed(crowd) -> None:
    hanging = crowd.begin("while True: pass")
    right, wall_s = crowd.begin(RIGHT.format(factor=8)).result(120.0)
    assert right.verdict.kind == "correct", right.verdict.reason
    assert not hanging.done()
    assert wall_s < CORRECTNESS_S
    hung, _ = hanging.result(240.0)
    assert (hung.verdict.kind, hung.verdict.limit_s) == ("timed_out", CORRECTNESS_S)


@pytest.mark.soak
def test_a_candidate_at_rest_runs_nothing_while_another_is_timed(crowd) -> None:
    # It leaves a thread that is always at work; were it not stopped, the other would be slowed.
    before = (
        "import threading\n"
        "def work():\n"
        "    while True:\n"
        "        pass\n"
        "threading.Thread(target=work, daemon=True).start()\n"
    )
    busy = [crowd.begin(RIGHT.format(factor=2 + n), before=before) for n in (14, 30)]
    calm = crowd.begin(RIGHT.format(factor=64))
    assert calm.result(120.0)[0].verdict.kind == "correct"
    for each in busy:  # it may well slow itself: that is its own
        assert each.result(120.0)[0].verdict.kind in ("correct", "cheated")


def test_an_innocent_whose_parent_was_killed_by_another_is_judged_again(crowd) -> None:
    at_work = threading.Event()
    share = crowd.supervisor._bench.turns.take
    zygote = crowd.supervisor._bench.zygote

    def taken():
        at_work.set()
        return share()

    crowd.supervisor._bench.turns.take = taken
    try:
        judged = [crowd.begin(f"{RIGHT.format(factor=128)}  # {n}") for n in range(3)]
        assert at_work.wait(60.0)
        zygote._process.kill()  # as a candidate might that found a way to
        outcomes = [each.result(240.0)[0] for each in judged]
    finally:
        crowd.supervisor._bench.turns.take = share
    assert [made.verdict.kind for made in outcomes] == ["correct"] * 3, outcomes
    assert any("disturbed" in made.timeline_s for made in outcomes)


def test_a_candidate_that_finds_no_memory_beside_others_is_judged_again_alone(crowd) -> None:
    greedy = crowd.begin("return torch.zeros(100 << 30, dtype=torch.uint8)")
    beside = crowd.begin(f"{RIGHT.format(factor=256)}")
    made, _ = greedy.result(120.0)
    innocent = beside.result(120.0)[0]
    assert innocent.verdict.kind == "correct", innocent.verdict
    assert made.verdict.kind == "crashed"


def test_a_child_forked_ahead_has_its_candidates_builds_and_sees_no_others(crowd) -> None:
    warm = crowd.supervisor._bench.warm
    builds = crowd.cache_dir / "build"
    mine, other = builds / "mine", builds / "others"
    for folder in (mine, other):
        (folder / "deep").mkdir(parents=True)
        (folder / "deep" / "made.txt").write_text("built\n")
    crowd.supervisor.settle()
    child = warm.take(dtype=None, build_dir=mine)
    assert child is not None
    probe = f"""
import os
from pathlib import Path
mine = Path({str(mine)!r})
assert (mine / "deep" / "made.txt").read_text() == "built\\n"
assert os.listdir({str(builds)!r}) == ["mine"]
assert os.environ["KOPT_BUILD_DIR"] == str(mine)
opened = [os.path.realpath(f"/proc/self/fd/{{fd}}") for fd in os.listdir("/proc/self/fd")]
assert not [path for path in opened if path.startswith({str(builds)!r})]
(mine / "left.txt").write_text("left behind")
try:
    Path({str(crowd.cache_dir)!r}, "outside.txt").write_text("x")
except OSError:
    pass
else:
    raise AssertionError("it can write outside of its folders")
"""
    try:
        child.ask("import", timeout_s=30.0, source=probe, name="candidate")
    except ChildFailed as failure:
        pytest.fail(failure.log)
    finally:
        child.end()
    assert sorted(each.name for each in mine.rglob("*")) == ["deep", "made.txt"]
    assert not (crowd.cache_dir / "outside.txt").exists()


@pytest.mark.soak
def test_a_child_forked_ahead_is_handed_out_once_and_not_if_it_died(crowd) -> None:
    warm = crowd.supervisor._bench.warm
    build_dir = crowd.cache_dir / "build" / "twice"
    build_dir.mkdir(parents=True)
    crowd.supervisor.settle()
    first, second = (warm.take(dtype=None, build_dir=build_dir) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.pid != second.pid
    for each in (first, second):
        each.end()
    crowd.supervisor.settle()
    dead = {child.pid for _, child in warm._ready}
    for _, child in warm._ready:
        child.kill()
        assert child._channel.wait(SOON_S)  # it is gone
    third = warm.take(dtype=None, build_dir=build_dir)
    if third is not None:  # made meanwhile
        assert third.pid not in dead
        third.end()
    made, _ = crowd.begin(RIGHT.format(factor=512)).result(120.0)
    assert made.verdict.kind == "correct", made.verdict.reason


def test_builds_that_lie_elsewhere_take_a_child_of_their_own(crowd, tmp_path) -> None:
    assert crowd.supervisor._bench.warm.take(dtype=None, build_dir=tmp_path) is None


def test_children_that_died_with_their_zygote_are_made_again(crowd) -> None:
    warm = crowd.supervisor._bench.warm
    zygote = crowd.supervisor._bench.zygote
    build_dir = crowd.cache_dir / "build" / "after"
    build_dir.mkdir(parents=True)
    crowd.supervisor.settle()
    zygote._process.kill()
    zygote._process.wait()
    zygote.ensure()
    crowd.supervisor.settle()
    child = warm.take(dtype=None, build_dir=build_dir)
    assert child is not None
    child.end()


def test_after_a_fork_that_failed_the_next_are_tried_again(crowd, monkeypatch) -> None:
    warm = crowd.supervisor._bench.warm
    build_dir = crowd.cache_dir / "build" / "again"
    build_dir.mkdir(parents=True, exist_ok=True)
    crowd.supervisor.settle()
    fails = [True]
    make = warm._make

    def made():
        if fails:
            raise WorkerLost("zygote", "killed")
        return make()

    monkeypatch.setattr(warm, "_make", made)
    for _ in range(warm._size):
        warm.take(dtype=None, build_dir=build_dir).end()
    crowd.supervisor.settle()
    assert warm.take(dtype=None, build_dir=build_dir) is None
    fails.clear()
    crowd.supervisor.settle()
    child = warm.take(dtype=None, build_dir=build_dir)
    assert child is not None
    child.end()
