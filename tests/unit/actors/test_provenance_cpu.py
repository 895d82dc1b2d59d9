"""Whose work a candidate's call is, on the CPU: real children and real records, on both tracks.

The gate is called as it is after a race, without the race: a busy host changes no verdict here.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.actors.config import EvaluateConfig
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.gates import correctness_gate
from kopt.actors.supervisor.loading import load_candidate
from kopt.actors.supervisor.provenance import judge_track, record_provenance, unrecorded
from kopt.actors.supervisor.session import Session, open_session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.actors.supervisor.zygote import Zygote
from kopt.candidate import Candidate, Language
from kopt.cli.evaluate import evaluation_text
from kopt.evaluation import Check, Evaluation, Track
from kopt.problem import Problem
from kopt.prompts.verdict_text import verdict_text
from kopt.timing import Timing
from kopt.verdict import Correct, Incorrect, NumericError

CONFIG = EvaluateConfig(secret=20_240_607, compile=False, trials=1, memory_gib=4.0)
TIMING = Timing(
    time_us=1_000.0,
    time_ci_us=(990.0, 1_010.0),
    baseline="eager",
    baseline_us=1_000.0,
    speedup=1.0,
    speedup_ci=(0.99, 1.01),
    eager_us=1_000.0,
    compile_us=None,
)
"""As fast as the reference: what its record is held against."""
SLOW = dataclasses.replace(TIMING, time_us=5_000.0)
"""A loop of a scalar exponential takes several times as long."""
PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x)
        return y * y + x


def get_inputs():
    return [torch.randn(1024, 512)]
"""
MODULE = """
import ctypes
import os
import subprocess

import torch
from torch import nn

TEXT = r'''
#include <cmath>
extern "C" void whole(const float *x, float *out, long count) {
    for (long at = 0; at < count; ++at) {
        const float y = 1 / (1 + std::exp(-x[at]));
        out[at] = y * y + x[at];
    }
}
extern "C" void leaf(const float *, float *out) { out[0] = 0; }
'''


def library():
    path = os.path.join(os.environ["KOPT_BUILD_DIR"], "kernel.so")
    if not os.path.exists(path):
        with open(path + ".cpp", "w") as file:
            file.write(TEXT)
        flags = ["-O2", "-shared", "-fPIC"]
        subprocess.run(["g++", *flags, path + ".cpp", "-o", path], check=True)
    return ctypes.CDLL(path)


made = library()


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


class ModelNew(nn.Module):
    def forward(self, x):
BODY
"""
OWN = """
out = torch.empty_like(x)
made.whole(at(x), at(out), ctypes.c_long(x.numel()))
return out
"""
LEAF = """
spare = torch.empty(1)
made.leaf(at(x), at(spare))
y = torch.sigmoid(x)
return y * y + x
"""
FALLS_BACK = """
try:
    raise RuntimeError("no kernel for this shape")
except RuntimeError:
    y = torch.sigmoid(x)
    return y * y + x
"""
MIXED = """
out = torch.empty_like(x[: x.shape[0] // 8])
made.whole(at(x), at(out), ctypes.c_long(out.numel()))
rest = x[x.shape[0] // 8 :]
y = torch.sigmoid(rest.double()).float()
return torch.cat([out, y * y + rest])
"""
REWRITTEN = """
y = torch.sigmoid(x)
return torch.addcmul(x, y, y)
"""
MAPPED = """
y = torch.sigmoid(x)
return torch.addcmul(x, y, y)
"""
"""Its own binary is loaded, and never called."""
NUMPY = """
import numpy
y = 1 / (1 + numpy.exp(-x.numpy()))
return torch.from_numpy(y * y + x.numpy())
"""


@dataclass(frozen=True)
class Gone:
    """What became of a candidate at the gate."""

    trail: Trail
    evaluation: Evaluation

    def check(self, name: str) -> Check:
        return next(each for each in self.trail.checks if each.name == name)


class Workplace:
    """A session on the CPU, and candidates on their way through the gate."""

    def __init__(self, folder: Path) -> None:
        environment = child_environment(scratch=Path("/tmp"), num_threads=1, cache_dir=folder)
        self._bench = Bench(
            zygote=Zygote(environment),
            device="cpu",
            config=CONFIG,
            cache_dir=folder,
            num_threads=1,
            memory_bytes=4 << 30,
        )
        self._session: Session = open_session(self._bench, Problem(name="swish", source=PROBLEM))
        self._folder = folder

    def judge(
        self,
        body: str,
        *,
        track: Track = "anything",
        language: Language = "cpp",
        timing: Timing = TIMING,
    ) -> Gone:
        text = MODULE.replace("BODY", textwrap.indent(body.strip(), " " * 8))
        if language == "torch":
            text = text.replace("made = library()", "")
        candidate = Candidate(source=text, language=language)
        build_dir = self._folder / "build" / candidate.candidate_id
        build_dir.mkdir(parents=True, exist_ok=True)
        config = CONFIG.model_copy(update={"track": track})
        bench = dataclasses.replace(self._bench, config=config)
        trail = Trail()
        loaded = load_candidate(
            bench,
            self._session,
            candidate,
            build_dir=build_dir,
            trail=trail,
            on_child=lambda child: None,
        )
        error = NumericError(max_abs=0.0, rel_norm=0.0, rho=None)
        try:
            correctness_gate(bench, self._session, loaded, trail=trail)
            said = record_provenance(
                bench,
                self._session,
                candidate,
                loaded,
                build_dir=build_dir,
                timing=timing,
                trail=trail,
            )
            judge_track(bench, said, trail=trail)
            verdict = Correct(timing=timing, error=error)
        except Judged as judged:
            verdict = judged.verdict
        finally:
            loaded.child.end()
        evaluation = Evaluation(
            verdict=verdict,
            problem="p",
            candidate="c",
            language=language,
            ladder="strict",
            device="cpu",
            track=track,
            checks=(*trail.checks, *unrecorded(trail)),
            library_share=trail.library_share,
        )
        return Gone(trail, evaluation)

    def close(self) -> None:
        self._session.close()
        self._bench.zygote.close()


@pytest.fixture(scope="module")
def judge(tmp_path_factory) -> Iterator[Callable[..., Gone]]:
    """Returns a function: what becomes of a forward's body at the gate."""
    place = Workplace(tmp_path_factory.mktemp("cache"))
    yield place.judge
    place.close()


def test_a_kernel_of_its_own_has_nearly_all_of_the_time(judge) -> None:
    gone = judge(OWN, timing=SLOW)
    share = gone.trail.library_share
    assert share is not None, gone.check("provenance").detail
    assert share < 0.2
    assert gone.check("fallback").passed
    assert gone.check("provenance").detail.startswith("own ")


def test_torch_alone_has_no_time_of_its_own(judge) -> None:
    gone = judge(REWRITTEN, language="torch")
    assert gone.trail.library_share == 1.0
    assert gone.check("fallback").passed


def test_torch_beside_a_kernel_of_its_own_is_told_apart(judge) -> None:
    gone = judge(MIXED)
    share = gone.trail.library_share
    assert share is not None, gone.check("provenance").detail
    assert 0.1 < share < 0.95


def test_a_binary_that_is_never_called_has_no_time(judge) -> None:
    gone = judge(MAPPED)
    assert gone.trail.library_share is not None, gone.check("provenance").detail
    # Memory that is made for outputs is on no list: 7 to 11 % of this call on a 2.1 GHz host.
    assert gone.trail.library_share > 0.8


def test_a_package_between_torchs_operations_is_a_library(judge) -> None:
    gone = judge(NUMPY, language="torch")
    assert gone.trail.library_share == 1.0
    assert gone.check("fallback").passed


def test_a_fall_back_is_said_so_and_stays_correct(judge) -> None:
    gone = judge(FALLS_BACK, language="torch")
    assert gone.evaluation.verdict.kind == "correct"
    assert not gone.check("fallback").passed
    assert "aten::sigmoid" in gone.check("fallback").detail
    assert "it falls back: what runs is the reference's own path" in evaluation_text(
        gone.evaluation
    )
    text = verdict_text(gone.evaluation, log_characters=1_000)
    assert "`fallback` (it runs what the reference itself runs" in text
    assert "100% of the device's time went into libraries" in text


def test_a_fig_leaf_beside_the_references_path_is_a_fall_back(judge) -> None:
    assert not judge(LEAF).check("fallback").passed


def test_on_the_track_kernels_own_work_passes(judge) -> None:
    gone = judge(OWN, track="kernels", timing=SLOW)
    assert gone.evaluation.verdict.kind == "correct", gone.evaluation.verdict.reason
    assert gone.check("track").passed


@pytest.mark.parametrize(
    ("body", "language"),
    [(REWRITTEN, "torch"), (FALLS_BACK, "torch"), (LEAF, "cpp")],
    ids=["torch alone", "falls back", "fig leaf"],
)
def test_on_the_track_kernels_a_librarys_work_does_not_count(judge, body, language) -> None:
    gone = judge(body, track="kernels", language=language)
    assert isinstance(gone.evaluation.verdict, Incorrect)
    assert gone.evaluation.verdict.check == "track"
    assert not gone.check("track").passed
    text = verdict_text(gone.evaluation, log_characters=1_000)
    assert "the work may not be left to libraries and PyTorch" in text


def test_what_is_not_correct_is_not_recorded_and_says_so(judge) -> None:
    gone = judge("return x", language="torch")
    assert gone.evaluation.verdict.kind == "incorrect"
    assert gone.evaluation.library_share is None
    (check,) = unrecorded(gone.trail)
    assert not check.passed
    assert check.detail.endswith("only a candidate that is correct is recorded")


def lie(record: str) -> str:
    """A forward that is right, and a child whose record is what an expression gives."""
    source = f"import kopt.actors.child.runner as r\nr.recorded = lambda *a, **k: {record}"
    return f"exec({source!r})\n{FALLS_BACK.strip()}"


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("{'own_us': 1e9, 'span_us': 1e9}", "in place of"),
        ("1 / 0", "ZeroDivisionError"),
        ("__import__('os')._exit(3)", "exit status 3"),
    ],
)
def test_a_record_that_is_none_is_no_share_and_never_zero(judge, record, why) -> None:
    gone = judge(lie(record), language="torch")
    assert gone.evaluation.verdict.kind == "correct"
    assert gone.trail.library_share is None
    assert why in gone.check("provenance").detail


def test_a_record_that_is_none_counts_as_nothing_on_the_track_kernels(judge) -> None:
    gone = judge(lie("{}"), track="kernels", language="torch")
    assert isinstance(gone.evaluation.verdict, Incorrect)
    assert gone.evaluation.verdict.check == "track"
    assert "shown to be its own kernels'" in gone.evaluation.verdict.detail
