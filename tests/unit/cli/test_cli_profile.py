"""`kopt profile` on this CPU: a table for a person, JSON for `kopt findings`, plain errors."""

from __future__ import annotations

import json

import pytest

from kopt.cli.dispatch import main

CANDIDATE = """\
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, *inputs):
        return torch.softmax(inputs[0], dim=-1)
"""
PROBLEM = (
    CANDIDATE.replace("ModelNew", "Model")
    + "\n\ndef get_inputs():\n    return [torch.rand(64, 32)]\n"
)


@pytest.fixture
def files(tmp_path) -> tuple[str, str]:
    problem, candidate = tmp_path / "rows.py", tmp_path / "candidate.py"
    problem.write_text(PROBLEM)
    candidate.write_text(CANDIDATE)
    return str(problem), str(candidate)


@pytest.mark.slow
def test_a_profile_is_evidence_that_findings_reads(files, tmp_path, capfd) -> None:
    out = tmp_path / "evidence.json"
    assert main(["profile", *files, "device=cpu", "--json", "--out", str(out)]) == 0
    record = json.loads(capfd.readouterr().out)
    assert (record["schema"], record["level"], record["verified"]) == (1, "timeline", False)
    assert "aten::_softmax" in {kernel["name"] for kernel in record["kernels"]}
    assert record["roofline"]["flops"] == 5.0 * 64 * 32
    assert main(["findings", str(out)]) == 0
    assert "evidence: timeline" in capfd.readouterr().out


@pytest.mark.slow
def test_a_person_reads_that_nothing_was_verified(files, capfd) -> None:
    assert main(["profile", *files, "device=cpu"]) == 0
    text = capfd.readouterr().out
    assert "unverified" in text
    assert "aten::_softmax" in text


@pytest.mark.slow
def test_energy_that_cannot_be_measured_is_left_out_and_said(files, capfd) -> None:
    assert main(["profile", *files, "device=cpu", "--energy", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["measured_energy"] is None
    assert any("energy: of GPUs alone" in remark for remark in record["remarks"])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["profile", "builtin/softmax"], "CANDIDATE"),
        (["profile", "builtin/softmax", "/nowhere.py"], "nowhere"),
        (["profile", "builtin/softmax", "x.py", "--level", "deep"], "deep"),
    ],
)
def test_bad_usage_is_one_line(arguments, why, capfd) -> None:
    assert main(arguments) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert why in lines[0]
