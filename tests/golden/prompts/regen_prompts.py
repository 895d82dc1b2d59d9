"""Requests whose prompts are held still: each mode and failure, on a CPU and on a GPU."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

from kopt.candidate import Candidate, Language
from kopt.compiled.choices import Choice, Side, Value
from kopt.compiled.record import Apart, KernelNote, LibraryCall
from kopt.evaluation import Check, Evaluation
from kopt.evidence import Rule
from kopt.expansion import MODES, Expansion, Mode
from kopt.finding import Finding
from kopt.ports import AnalysisRequest, Attempt, Target, Telling, WriteRequest
from kopt.problem import Problem
from kopt.prompts import build
from kopt.prompts.agent_grouping import grouping_prompt
from kopt.prompts.analysis import build_analysis
from kopt.prompts.transcript import transcript
from kopt.testing.fake_profiler import ANALYSIS
from kopt.testing.planted_evidence import planted_evidence
from kopt.timing import Timing
from kopt.tools.diagnosis import diagnose
from kopt.verdict import CompileFailed, Correct, Crashed, Incorrect, NumericError, Verdict

LEVEL2: dict[str, Any] = runpy.run_path(str(Path(__file__).with_name("level2_case.py")))
TARGETS = {
    "cpu": LEVEL2["TARGETS"]["cpu"],
    "cuda": Target(
        device="cuda",
        name="NVIDIA H200",
        arch="sm_90",
        languages=("triton", "cuda", "cpp", "torch"),
    ),
}
PROBLEM = Problem(
    name="scaled_mean",
    source='''"""The mean of each scaled row."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return (x * self.scale).mean(dim=-1)


def get_inputs():
    return [torch.randn(4096, 1024)]


def get_init_inputs():
    return [1024]
''',
)
WRITTEN = """import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x @ self.scale / x.shape[-1]
"""
ERROR = NumericError(max_abs=0.0317, rel_norm=0.00021, rho=212.4)
VERDICTS: dict[str, Verdict] = {
    "debug_compile": CompileFailed(
        stage="build",
        log="\n".join(f"In file included from header_{number}.h" for number in range(200))
        + "\nkernel.cpp:7:20: error: expected ';' before '}' token\n    7 |   out[r] = total }\n",
    ),
    "debug_incorrect": Incorrect(
        check="values:heavy_tail#1",
        detail="error 0.0317 against float64 is 212 times the reference's own 0.000149; at most "
        "10 times passes; first at [17]: expected 3.25, found 3.2817",
        error=ERROR,
    ),
    "debug_crashed": Crashed(
        stage="correctness",
        log="Traceback (most recent call last):\n"
        '  File "candidate.py", line 11, in forward\n'
        "    return x @ self.scales / x.shape[-1]\n"
        "AttributeError: 'ModelNew' object has no attribute 'scales'\n",
    ),
    "optimize": Correct(
        timing=Timing(
            time_us=21.4,
            time_ci_us=(21.2, 21.7),
            baseline="compile",
            baseline_us=25.9,
            speedup=1.21,
            speedup_ci=(1.19, 1.23),
            eager_us=61.0,
            compile_us=25.9,
            sol_us=3.5,
            num_pairs=12,
        ),
        error=NumericError(max_abs=2.1e-7, rel_norm=1.4e-7, rho=1.3),
    ),
}
FINDING = Finding(
    tool="memory_throughput",
    severity="high",
    title="DRAM bandwidth half used",
    summary="The kernel moves 16.8 MB at 46 % of the device's bandwidth.",
    root_cause="Each thread has one 4-byte load in flight.",
    recommendations=("Load 16 bytes a thread.", "Give each warp a row of its own."),
    expected_improvement="up to 2x",
    observed={"dram_throughput_pct": 46.0},
    kernel="row_mean",
)


ARMS = {
    "tools": Telling(energy=True),
    "rules": Telling(feedback="rules"),
    "raw": Telling(feedback="raw"),
    "none": Telling(feedback="none"),
    "reactive": Telling(orchestration="reactive"),
    "analysis": Telling(),
}


def request(case: str, device: str) -> WriteRequest:
    """Return the request of a case: `initial`, `optimize`, or `debug_` and what went wrong."""
    target = TARGETS[device]
    language: Language = target.languages[0]
    mode: Mode = "debug" if case.startswith("debug") else "optimize"
    if case == "initial":
        mode = "initial"
    candidate = Candidate(
        source=WRITTEN, language=language, strategy="One product in place of two passes."
    )
    attempt = None
    if case != "initial":
        evaluation = Evaluation(
            verdict=VERDICTS[case],
            problem=PROBLEM.problem_id,
            candidate=candidate.candidate_id,
            language=language,
            ladder="strict",
            device=target.label,
            checks=(
                Check(name="static:try", passed=True, detail="line 3: has a try"),
                Check(name="weights", passed=True, detail="1 of 1 tensors by name"),
                Check(name="values:own#0", passed=True, detail="max error 2.1e-07, rho 1.3"),
            )
            if case != "debug_compile"
            else (),
        )
        attempt = Attempt(
            candidate=candidate,
            evaluation=evaluation,
            findings=(FINDING,) if (case, device) == ("optimize", "cuda") else (),
        )
    return WriteRequest(
        problem=PROBLEM,
        target=target,
        search="scaled_mean/default/0",
        arm="default",
        seed=0,
        expansion=Expansion(
            ordinal=3,
            parent_node=0 if attempt is None else 2,
            parent=None if attempt is None else candidate.candidate_id,
            mode=mode,
            num_candidates=2,
            first_child=2 if case == "optimize" else 0,
            seed=11,
        ),
        parent=attempt,
    )


def profiled(arm: str) -> WriteRequest:
    """Return a request to optimise what was profiled on a GPU, in an arm of the ablation."""
    made = request("optimize", "cuda")
    assert made.parent is not None
    evidence = planted_evidence()["uncoalesced"][0]
    rule = Rule(
        name="UncoalescedGlobalAccess",
        section="SourceCounters",
        kind="OPT",
        message="Uncoalesced accesses: 87 % of the sectors are excessive.",
        speedup_pct=41.5,
        speedup_scope="local",
    )
    evidence = replace(evidence, kernels=(replace(evidence.kernels[0], rules=(rule,)),))
    diagnosis = diagnose(evidence)
    attempt = replace(
        made.parent,
        evidence=evidence,
        findings=diagnosis.findings,
        left_out=diagnosis.left_out,
        remarks=diagnosis.remarks,
        energy_notes=diagnosis.energy_notes,
        analysis=ANALYSIS if arm == "analysis" else None,
    )
    return replace(made, parent=attempt, telling=ARMS[arm])


def analysed() -> AnalysisRequest:
    """Return the request to condense that profile."""
    made = profiled("tools")
    assert made.parent is not None
    return AnalysisRequest(problem=made.problem, target=made.target, attempt=made.parent, seed=3)


def taken_apart() -> Apart:
    """Return a compiled model of two layers, at the end of each a pair that may be fused."""

    def value(name: str, *size: int) -> Value:
        count = 4
        for each in size:
            count *= each
        return Value(name=name, dtype="float32", size=size, num_bytes=count)

    def side(place: int, name: str, operations: tuple[str, ...], read: Value, made: Value) -> Side:
        return Side(
            places=(place,),
            kernels=(name,),
            operations=operations,
            reads=(read,),
            results=(made,),
            share=0.12,
        )

    def choice(place: int, *, first: Value, passed: Value, last: Value, tail: bool) -> Choice:
        names = ("triton_per_fused_softmax_0", "triton_red_fused_sum_1")
        return Choice(
            place=place,
            before=side(place - 2, names[0], ("amax", "sub", "exp", "sum", "div"), first, passed),
            behind=side(place, names[tail], ("mul", "sum"), passed, last),
            passed=(passed,),
            saved=0.5 if tail else 0.07,
            rule_fuses=tail,
            fused=tail,
            why="fused: 50% of their traffic is saved"
            if tail
            else "kept apart: the next launch saves less than 15%",
        )

    small, large = value("buf4", 64), value("buf1", 4096, 1024)
    return Apart(
        model="two_layers",
        kernels=(
            KernelNote(
                name="triton_per_fused_softmax_0",
                language="triton",
                kind="persistent_reduction",
                launches=4,
                share=0.6,
            ),
        ),
        library_calls=(LibraryCall(name="extern_kernels.mm", text="extern_kernels.mm(a, b)"),),
        choices=(
            choice(12, first=value("arg0_1", 4096, 1024), passed=large, last=small, tail=True),
            choice(20, first=small, passed=small, last=large, tail=False),
            choice(32, first=value("arg0_1", 4096, 1024), passed=large, last=small, tail=True),
        ),
    )


def golden_prompts() -> dict[str, str]:
    """Return the text of each prompt, by its file's stem."""
    plain = {
        f"{case}-{device}": transcript(build(request(case, device)))
        for case in ("initial", *VERDICTS)
        for device in TARGETS
    }
    arms = {f"profiled_{arm}-cuda": transcript(build(profiled(arm))) for arm in ARMS}
    level2 = {
        f"level2_{mode}-{device}": transcript(build(LEVEL2["level2_request"](mode, device)))
        for mode in MODES
        for device in TARGETS
    }
    json_form = transcript(build(LEVEL2["level2_request"]("optimize", "cpu"), form="json"))
    file_form = transcript(build(LEVEL2["level2_request"]("optimize", "cuda"), form="file"))
    analyst = transcript(build_analysis(analysed()))
    strategist = transcript(grouping_prompt(taken_apart()))
    return (
        plain
        | arms
        | level2
        | {
            "level2_json-cpu": json_form,
            "level2_file-cuda": file_form,
            "analyst-cuda": analyst,
            "strategist-cpu": strategist,
        }
    )
