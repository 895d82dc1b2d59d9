"""What was recorded of the planted kernels on a GPU: the right tool speaks first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.data.evidence_json import evidence_from_json
from kopt.tools.diagnosis import diagnose

FINDINGS = Path(__file__).parents[2] / "golden" / "findings"
EXPECTED = json.loads((FINDINGS / "planted_sources" / "expected.json").read_text("utf-8"))
RECORDED = {
    path.name.removesuffix(".evidence.json"): path
    for path in sorted((FINDINGS / "recorded").glob("*.evidence.json"))
}
MAX_BYTES = 1_000_000


def test_every_planted_kernel_has_a_source_and_an_expectation() -> None:
    assert {path.stem for path in (FINDINGS / "planted_sources").glob("*.py")} == set(EXPECTED)
    assert len(EXPECTED) == 10


@pytest.mark.parametrize("name", sorted(RECORDED.keys() & EXPECTED.keys()))
def test_the_right_tool_is_first_on_real_counters(name) -> None:
    evidence = evidence_from_json(json.loads(RECORDED[name].read_text("utf-8")))
    found = [finding.tool for finding in diagnose(evidence).findings]
    assert found[:1] == [tool for tool in EXPECTED[name] if tool == (found or [None])[0]], found
    assert found or not EXPECTED[name]


def test_recordings_are_small_and_name_no_host() -> None:
    assert sum(path.stat().st_size for path in RECORDED.values()) < MAX_BYTES
    for path in RECORDED.values():
        text = path.read_text("utf-8")
        assert "/home/" not in text
        assert "127.0.0.1" not in text
