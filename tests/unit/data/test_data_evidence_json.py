"""Evidence as JSON: missing is null, `class` is the roofline's, and bad input is one line each."""

from __future__ import annotations

import json
import math

import jsonschema
import pytest

from kopt.data.evidence_json import evidence_from_json, evidence_to_json
from kopt.data.schemas import load
from kopt.errors import ConfigError
from kopt.evidence import Energy, Evidence, KernelEvidence, Roofline, Rule, Timeline

FULL = Evidence(
    device="NVIDIA H200",
    arch="sm_90",
    level="ncu",
    kernels=(
        KernelEvidence(
            name="k",
            owner="user",
            launches=2,
            time_us=3.5,
            share=0.25,
            metrics={"dram__bytes.sum": 1e9, "sm__cycles_active.avg": None},
            sass={"FFMA": 12},
            registers=64,
            spill_bytes=0,
            smem_bytes=1024,
        ),
    ),
    timeline=Timeline(e2e_us=14.0, busy_us=7.0, launches=2, gaps_us=(6.0, 1.0)),
    roofline=Roofline(flops=1e9, bytes=1e6, bottleneck="compute", confidence="high"),
    energy=Energy(proxy_pj=1.5),
)
BARE = Evidence(device="cpu", arch="x86_64", level="static")


@pytest.mark.parametrize("evidence", [FULL, BARE])
def test_evidence_comes_back_equal_and_keeps_its_schema(evidence: Evidence) -> None:
    record = json.loads(json.dumps(evidence_to_json(evidence), allow_nan=False))
    jsonschema.validate(record, load("evidence"))
    assert evidence_from_json(record) == evidence


def test_missing_is_null_never_zero() -> None:
    assert evidence_to_json(BARE) == {
        "schema": 1,
        "device": "cpu",
        "arch": "x86_64",
        "level": "static",
        "time_us": None,
        "kernels": [],
        "timeline": None,
        "roofline": None,
        "energy": None,
    }


def test_what_is_not_finite_is_missing() -> None:
    kernel = KernelEvidence(name="k", owner="aten", launches=1, metrics={"a": math.nan})
    record = evidence_to_json(Evidence(device="d", arch="a", level="ncu", kernels=(kernel,)))
    assert record["kernels"][0]["metrics"] == {"a": None}


def test_a_record_with_what_is_not_finite_is_read_as_missing() -> None:
    record = evidence_to_json(FULL)
    record["kernels"][0]["metrics"] = {"a": math.inf, "b": 1.0}
    assert evidence_from_json(record).kernels[0].metrics == {"a": None, "b": 1.0}


def test_the_rules_of_the_profiler_come_back() -> None:
    rule = Rule(name="CPIStall", section="S", kind="OPT", message="m", speedup_pct=14.2)
    kernel = KernelEvidence(name="k", owner="user", launches=1, rules=(rule,))
    evidence = Evidence(device="d", arch="a", level="ncu", kernels=(kernel,))
    assert evidence_from_json(json.loads(json.dumps(evidence_to_json(evidence)))) == evidence


def test_the_roofline_has_a_class() -> None:
    roofline = evidence_to_json(FULL)["roofline"]
    assert roofline["class"] == "compute"
    assert "bottleneck" not in roofline


def test_a_field_left_out_is_missing_and_an_unknown_one_is_ignored() -> None:
    record = {"schema": 1, "device": "cpu", "arch": "x86_64", "level": "static", "later": 1}
    assert evidence_from_json(record) == BARE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "evidence: expected schema 1, found 2"),
        ({"level": "guess"}, "evidence level: .*'ncu', 'timeline' or 'static'.*'guess'"),
        ({"kernels": [{"name": "k", "launches": 1}]}, "evidence kernels.0.owner: Field required"),
        ({"roofline": {"class": "gpu"}}, "evidence roofline.bottleneck: "),
    ],
)
def test_bad_evidence_is_named_line_by_line(change: dict[str, object], words: str) -> None:
    record = {"schema": 1, "device": "cpu", "arch": "x86_64", "level": "static", **change}
    with pytest.raises(ConfigError, match=words):
        evidence_from_json(record)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a JSON object, found list"):
        evidence_from_json([])
