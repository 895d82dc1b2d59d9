"""Candidates judged beside each other on a GPU: nobody is timed beside another's kernel."""

from __future__ import annotations

import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kopt.actors.config import EvaluateConfig, TimeoutConfig, TimingConfig
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.actors.supervisor.supply import Supply
from kopt.candidate import Candidate
from kopt.problem import Problem

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

LIMIT_S = 6.0
CONFIG = EvaluateConfig(
    secret=11,
    compile=False,
    trials=1,
    timeouts=TimeoutConfig(correctness_s=LIMIT_S),
    timing=TimingConfig(min_pairs=4, max_pairs=4),
)
SOURCE = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.rand(1024, 1024)]
"""
RIGHT = "return torch.relu(x) * {factor} / {factor} * 2"
BODIES = {
    "right": (RIGHT.format(factor=4), "correct"),
    "right too": (RIGHT.format(factor=8), "correct"),
    "hangs on the host": ("while True: pass", "timed_out"),
    "hangs on the device": ("torch.cuda._sleep(1 << 45)\nreturn torch.relu(x) * 2", "timed_out"),
    "wrong": ("return torch.relu(x) * 3", "incorrect"),
    "right at last": (RIGHT.format(factor=16), "correct"),
}


@pytest.fixture(scope="module")
def supervisor(new_cache):
    cache_dir = new_cache()
    supply = Supply(in_flight=3, warm_children=4)
    made = Supervisor(CONFIG, device="cuda", cache_dir=cache_dir, supply=supply)
    yield made, cache_dir
    made.close()


def test_verdicts_are_each_candidates_own_and_hangs_keep_nobody_waiting(supervisor) -> None:
    judge, cache_dir = supervisor
    problem = Problem(name="doubled", source=SOURCE)

    def one(body: str):
        text = SOURCE.replace("class Model(", "class ModelNew(")
        text = text.replace("        return torch.relu(x) * 2", textwrap.indent(body, " " * 8))
        candidate = Candidate(source=text, language="torch")
        build_dir = cache_dir / "build" / candidate.candidate_id
        build_dir.mkdir(parents=True)
        began_s = time.monotonic()
        made = judge.evaluate(problem, candidate, build_dir=build_dir)
        return made, time.monotonic() - began_s

    with ThreadPoolExecutor(3) as threads:
        outcomes = dict(zip(BODIES, threads.map(one, (b for b, _ in BODIES.values())), strict=True))
    found = {name: made.verdict.kind for name, (made, _) in outcomes.items()}
    assert found == {name: kind for name, (_, kind) in BODIES.items()}
    for made, wall_s in outcomes.values():
        assert sum(made.timeline_s.values()) == pytest.approx(wall_s, rel=0.05, abs=0.05)


def test_a_warm_child_has_its_context_before_its_candidate_comes(supervisor) -> None:
    judge, cache_dir = supervisor
    judge.settle()
    build_dir = cache_dir / "build" / "empty"
    build_dir.mkdir(parents=True)
    child = judge._bench.warm.take(dtype=None, build_dir=build_dir)
    assert child is not None
    try:
        began_s = time.monotonic()
        source = "import torch\nassert torch.cuda.is_initialized()\ntorch.zeros(1, device='cuda')\n"
        child.ask("import", timeout_s=30.0, source=source, name="candidate")
        assert time.monotonic() - began_s < 0.2  # a context alone takes longer
    finally:
        child.end()
