"""What readers of prompts stumbled over, and do no more: told twice, cut for nothing, misnamed."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.evaluation import Check
from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.memory.entry import entry_of
from kopt.memory.history import History
from kopt.memory.recall import Memory
from kopt.memory.tried import Tried
from kopt.ports import WriteRequest
from kopt.prompts import build
from kopt.prompts.evidence_text import host_code_text, roofline_text
from kopt.prompts.excerpts import short_line
from kopt.prompts.feedback_text import feedback_text
from kopt.prompts.verdict_text import verdict_text
from kopt.tools.feedback import feedback
from kopt.verdict import Correct

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
CASES: dict[str, Any] = runpy.run_path(str(GOLDEN / "regen_prompts.py"))


def request(case: str = "optimize") -> WriteRequest:
    made: WriteRequest = CASES["request"](case, "cuda")
    return made


def tried(strategy: str) -> Tried:
    return Tried(
        candidate="c",
        parent=None,
        expansion=0,
        strategy=strategy,
        language="triton",
        kind="correct",
        reason="correct",
        speedup=1.5,
        speedup_ci=(1.4, 1.6),
        over=1.0,
        parent_kind=None,
    )


def test_a_lesson_that_the_history_tells_is_not_told_twice() -> None:
    memory = Memory(
        entries=(
            entry_of("successful_patterns", "Both passes in one: 1.5x the baseline's speed"),
            entry_of("learnings", "Both passes matter."),
        )
    )
    told = replace(
        request(), memory=memory, history=History(siblings=(tried("Both passes in one."),))
    )
    user = build(told)[1].text
    assert user.count("Both passes in one") == 1
    assert "- Both passes in one (triton): right, 1.5x the baseline\n" in user
    assert "- Both passes matter.\n" in user
    alone = build(replace(told, history=History()))[1].text
    assert "- Both passes in one: 1.5x the baseline's speed" in alone


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (100, "x" * 100),
        (104, "x" * 104),  # the notice would be longer than what it saves
        (300, "x" * 100 + " … 200 characters left out …"),
    ],
)
def test_a_line_is_cut_only_where_that_makes_it_shorter(length: int, shown: str) -> None:
    assert short_line("x" * length, max_characters=100) == shown


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.8, 0.95), "It is slower than the baseline."),
        ((0.9, 1.1), "That is no difference beyond the noise."),
        ((1.1, 1.2), ""),
    ],
)
def test_a_speed_up_says_whether_it_is_one(interval: tuple[float, float], words: str) -> None:
    attempt = request().parent
    assert attempt is not None
    verdict = attempt.evaluation.verdict
    assert isinstance(verdict, Correct)
    timing = replace(verdict.timing, speedup=sum(interval) / 2, speedup_ci=interval)
    text = verdict_text(
        replace(attempt.evaluation, verdict=replace(verdict, timing=timing)), log_characters=100
    )
    said = [
        each
        for each in ("It is slower than the baseline.", "That is no difference beyond the noise.")
        if each in text
    ]
    assert said == [words] * bool(words)


def test_whose_kernels_took_the_time_is_said_once() -> None:
    attempt = request().parent
    assert attempt is not None
    owned = replace(
        attempt.evaluation,
        library_share=0.5,
        checks=(Check(name="provenance", passed=True, detail="gemm 50% (library)"),),
    )
    assert "By owner: gemm 50% (library)" in verdict_text(owned, log_characters=100)
    beside = verdict_text(owned, log_characters=100, with_owners=False)
    assert "By owner" not in beside
    assert "50% of the device's time" in beside


def cpu_evidence(**counts: int) -> Evidence:
    names = {name.replace("_", "."): count for name, count in counts.items()}
    kernel = KernelEvidence(name="run", owner="user", launches=1, share=1.0, sass=names)
    return Evidence(device="cpu", arch="x86_64", level="timeline", kernels=(kernel,))


def test_code_of_a_cpu_is_told_in_its_own_words() -> None:
    vectors = cpu_evidence(vmulps=6, vmulps_ymm=6, vfmadd231ps=2, vfmadd231ps_ymm=2, call=3, mov=9)
    assert host_code_text(vectors) == (
        "- `run`: 20 instructions; floating-point arithmetic on vectors of up to 256 bits; "
        "25% of it multiply-adds; 3 calls"
    )
    single = cpu_evidence(mulss=4, mulss_scalar=4)
    assert "on one element at a time; 0% of it multiply-adds" in host_code_text(single)
    text = feedback_text(vectors, feedback(vectors, mode="tools"))
    assert "### Machine code" in text
    assert "SASS" not in text
    assert "tensor instruction" not in text


def test_the_class_says_whose_work_it_is_about_and_how_much_there_is() -> None:
    roofline = Roofline(
        flops=137.4e9, bytes=335.5e6, intensity=409.6, ridge=13.9, bottleneck="compute"
    )
    evidence = Evidence(device="cuda", arch="sm_90", level="ncu", roofline=roofline)
    assert roofline_text(evidence).startswith(
        "Bottleneck of the problem, as the reference computes it: compute. Inputs, weights and "
        "outputs are 336 MB, each moved once; it computes 137 GFLOP. It has 410 FLOP per byte;"
    )


@pytest.mark.parametrize(("e2e_us", "is_told"), [(120.0, True), (80.0, False), (None, True)])
def test_a_speed_of_light_that_a_call_beats_is_not_told(e2e_us, is_told) -> None:
    evidence = Evidence(
        device="cpu",
        arch="x86_64",
        level="timeline",
        roofline=Roofline(bottleneck="compute", sol_us=100.0),
        timeline=None if e2e_us is None else Timeline(e2e_us=e2e_us),
    )
    assert ("Speed of light: 100.0 us." in roofline_text(evidence)) == is_told
