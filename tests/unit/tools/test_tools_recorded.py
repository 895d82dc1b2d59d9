"""What was recorded of the planted kernels on a GPU: the right tool speaks first."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kopt.cli.dispatch import main
from kopt.data.evidence_json import evidence_from_json
from kopt.evidence import Evidence
from kopt.tools.diagnosis import diagnose

FINDINGS = Path(__file__).parents[2] / "golden" / "findings"
EXPECTED = json.loads((FINDINGS / "planted_sources" / "expected.json").read_text("utf-8"))
RECORDED = {
    path.name.removesuffix(".evidence.json"): path
    for path in sorted((FINDINGS / "recorded").glob("*.evidence.json"))
}
MAX_BYTES = 1_000_000
HOST = re.compile(r"/(home|root|tmp|usr|opt|work)/|\d+\.\d+\.\d+\.\d+|localhost")


def recorded(name: str) -> Evidence:
    return evidence_from_json(json.loads(RECORDED[name].read_text("utf-8")))


def test_every_planted_kernel_has_a_source_and_an_expectation() -> None:
    assert {path.stem for path in (FINDINGS / "planted_sources").glob("*.py")} == set(EXPECTED)
    assert len(EXPECTED) == 10


def test_every_planted_kernel_is_recorded_with_its_counters() -> None:
    assert RECORDED.keys() >= EXPECTED.keys()
    for name in EXPECTED:
        evidence = recorded(name)
        assert evidence.level == "ncu"
        assert evidence.timeline is not None
        assert all(kernel.metrics for kernel in evidence.kernels)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_right_tool_is_first_on_real_counters(name) -> None:
    found = [finding.tool for finding in diagnose(recorded(name)).findings]
    if EXPECTED[name]:
        assert found[:1]
        assert found[0] in EXPECTED[name], found
    else:
        assert found == []


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_command_names_the_right_tool_first_of_a_recording(name, capsys) -> None:
    assert main(["findings", str(RECORDED[name])]) == 0
    out = capsys.readouterr().out
    first = [line.split()[2].rstrip(":") for line in out.splitlines() if line.startswith("1. ")]
    if EXPECTED[name]:
        assert first[0] in EXPECTED[name], out
    else:
        assert not first
        assert "no findings" in out


@pytest.mark.parametrize("name", ["hmma_on_hopper", "no_tensor_cores"])
def test_products_by_asynchronous_copies_are_not_called_uncoalesced(name) -> None:
    # Their bytes are in no counter of plain loads, which reads 0 beside millions of sectors.
    evidence = recorded(name)
    (kernel,) = evidence.kernels
    assert kernel.sass["LDGSTS"] > 0
    assert "LDG" not in kernel.sass
    found = diagnose(evidence, max_findings=None).findings
    assert "memory_coalescing" not in [each.tool for each in found]


def test_a_call_that_idles_is_told_of_its_wait_before_its_kernels_stalls() -> None:
    evidence = recorded("sync_in_forward")
    timeline = evidence.timeline
    assert timeline is not None
    assert timeline.busy_us is not None
    assert timeline.busy_us < 0.3 * timeline.e2e_us
    severities = {each.tool: each.severity for each in diagnose(evidence).findings}
    assert severities.pop("sync_overhead") == "critical"
    assert set(severities.values()) <= {"medium", "low"}


def test_recordings_are_small_and_name_no_host() -> None:
    assert sum(path.stat().st_size for path in RECORDED.values()) < MAX_BYTES
    for path in RECORDED.values():
        text = path.read_text("utf-8")
        assert not HOST.search(text)
        assert json.loads(text)["device"] == "NVIDIA H200"
