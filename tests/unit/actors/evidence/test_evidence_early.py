"""What is started before torch is imported, and serves whoever profiles then."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kopt.actors.build.gpu_facts import KNOWN, gpu_of_node
from kopt.actors.config import EvaluateConfig
from kopt.actors.evidence import early
from kopt.actors.evidence.capabilities import (
    Ability,
    Capabilities,
    fingerprint,
    save_capabilities,
)
from kopt.actors.evidence.early import start_early
from kopt.actors.evidence.workbench import Workbench
from kopt.problem import Problem

SOURCE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(1000)]
"""
WAITS = "#!/bin/sh\nexec sleep 600\n"


def test_starting_early_imports_no_torch() -> None:
    code = "import sys, kopt.actors.evidence.early; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_workbench_takes_the_zygote_over(tmp_path) -> None:
    begun = start_early(tmp_path, device="cpu", level="ncu")
    assert begun is not None
    assert begun.ncu is None
    bench = Workbench(
        EvaluateConfig(),
        device="cpu",
        cache_dir=tmp_path,
        is_lasting=False,
        zygote=begun.zygote,
    )
    try:
        problem = Problem(name="plus", source=SOURCE)
        report = bench.observe(problem, bench.order(problem, None), timeout_s=120.0)
        assert "aten::add" in report["trace"]
        assert begun.zygote.generation == 0
    finally:
        bench.close()
    begun.close()  # whoever started it closes it too, which does nothing then


def test_a_gpu_that_is_not_here_is_others_to_say(tmp_path) -> None:
    if gpu_of_node() is not None:
        pytest.skip("there is a GPU")
    assert start_early(tmp_path, device="cuda", level="ncu") is None


@pytest.fixture
def looked_at(tmp_path, monkeypatch):
    """The cache of a machine that has a GPU, and an ncu that never ends by itself."""
    program = tmp_path / "ncu"
    program.write_text(WAITS)
    program.chmod(0o755)
    on, off = Ability(ok=True, found="it is here"), Ability(ok=False, found="it is not here")
    cache = tmp_path / "cache"
    found = Capabilities(
        device="cuda",
        fingerprint=fingerprint("cuda"),
        counters=on,
        timeline=on,
        disassembly=on,
        energy=off,
        ncu_path=str(program),
        counter_names=("a__b.sum",),
    )
    save_capabilities(found, cache)
    monkeypatch.setattr(early, "gpu_of_node", lambda: KNOWN["9.0"])
    return cache


@pytest.mark.parametrize("level", ["timeline", "static", None])
def test_ncu_is_begun_only_where_counters_will_be_asked_for(looked_at, level) -> None:
    begun = start_early(looked_at, device="cuda", level=level)
    assert begun is not None
    begun.close()
    assert begun.ncu is None


def test_on_a_machine_that_was_looked_at_ncu_is_begun_too_and_ended(looked_at) -> None:
    begun = start_early(looked_at, device="auto", level="ncu")
    assert begun is not None
    assert begun.ncu is not None
    running = begun.ncu._running
    assert running is not None
    assert running.is_going()
    folder = begun.ncu._folder
    assert folder.is_dir()
    begun.close()
    begun.close()
    assert running._process.poll() is not None
    assert not folder.exists()


def test_on_a_machine_that_nobody_looked_at_no_ncu_is_begun(looked_at, tmp_path) -> None:
    begun = start_early(tmp_path / "other", device="cuda", level="ncu")
    assert begun is not None
    begun.close()
    assert begun.ncu is None
