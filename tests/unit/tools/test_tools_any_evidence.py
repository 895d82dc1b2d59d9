"""Whatever was measured, the tools answer: no exception, no fault, nothing that is no number."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kopt.cli.findings import findings_json, findings_table
from kopt.data.evidence_json import evidence_from_json, evidence_to_json
from kopt.evidence import Evidence, KernelEvidence, Roofline, Timeline
from kopt.prompts.feedback_text import feedback_text
from kopt.tools import diagnose
from kopt.tools.counters import CORE_COUNTERS
from kopt.tools.feedback import FEEDBACK_MODES, feedback

FIGURES = st.none() | st.sampled_from([0.0, 0.5, 1.0, 20.0, 90.0, 1e6, 1e12]) | st.floats(0, 1e15)
COUNTS = st.none() | st.integers(0, 10**6)
MNEMONICS = (
    "LDG",
    "LDG.128",
    "HMMA",
    "HGMMA",
    "FFMA",
    "STL",
    "LDL",
    "BAR",
    "EXIT",
    "HMMA.16816.F32",
)
CLASSES = st.sampled_from([None, "compute", "memory", "latency", "mixed"])


@st.composite
def kernels(draw) -> KernelEvidence:
    names = draw(st.lists(st.sampled_from(CORE_COUNTERS), max_size=90, unique=True))
    return KernelEvidence(
        name=draw(st.text(max_size=20)),
        owner=draw(st.sampled_from(["user", "library", "aten"])),
        launches=draw(st.integers(0, 1000)),
        time_us=draw(FIGURES),
        share=draw(st.none() | st.floats(0, 1)),
        metrics={name: draw(FIGURES) for name in names},
        sass=draw(st.dictionaries(st.sampled_from(MNEMONICS), st.integers(0, 500), max_size=6)),
        registers=draw(COUNTS),
        spill_bytes=draw(COUNTS),
    )


@st.composite
def evidences(draw) -> Evidence:
    timeline = Timeline(
        e2e_us=draw(st.floats(0, 1e9)),
        busy_us=draw(FIGURES),
        launches=draw(COUNTS),
        launch_overhead_pct=draw(FIGURES),
        avg_launch_ns=draw(FIGURES),
        gaps_us=tuple(draw(st.lists(st.floats(0, 1e6), max_size=4))),
        syncs=draw(COUNTS),
        sync_us=draw(FIGURES),
        memcpy_us=draw(FIGURES),
        memset_us=draw(FIGURES),
    )
    roofline = Roofline(
        flops=draw(FIGURES),
        matrix_flops=draw(FIGURES),
        bytes=draw(FIGURES),
        theoretical=draw(CLASSES),
        measured=draw(CLASSES),
        bottleneck=draw(CLASSES),
        sol_us=draw(FIGURES),
        reachable_us=draw(FIGURES),
    )
    return Evidence(
        device=draw(st.sampled_from(["NVIDIA H200", "cpu", ""])),
        arch=draw(st.sampled_from(["sm_90", "sm_80", "x86_64"])),
        level="ncu",
        time_us=draw(FIGURES),
        kernels=tuple(draw(st.lists(kernels(), max_size=3))),
        timeline=draw(st.none() | st.just(timeline)),
        roofline=draw(st.none() | st.just(roofline)),
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(evidences())
def test_every_tool_answers(evidence: Evidence) -> None:
    diagnosis = diagnose(evidence, max_findings=None)
    assert [(each.tool, each.fault) for each in diagnosis.silent if each.fault] == []
    json.dumps(asdict(diagnosis), allow_nan=False)
    assert diagnose(replace(evidence)) == diagnose(evidence)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(evidences(), st.sampled_from(FEEDBACK_MODES))
def test_every_mode_tells_and_the_evidence_comes_back(evidence: Evidence, mode) -> None:
    record = json.loads(json.dumps(evidence_to_json(evidence), allow_nan=False))
    assert evidence_from_json(record) == evidence
    told = feedback(evidence, mode=mode)
    assert len(feedback_text(evidence, told, with_energy=True)) < 14_000
    assert findings_table(evidence, told).endswith("\n")
    json.dumps(findings_json(evidence, told), allow_nan=False)
