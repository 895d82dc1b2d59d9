"""`kopt findings`: a recorded profile in, findings out; no GPU, no torch, errors in one line."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from kopt.cli.dispatch import main
from kopt.data.schemas import load

GOLDEN = Path(__file__).parents[2] / "golden" / "findings"
UNCOALESCED = str(GOLDEN / "planted" / "uncoalesced.evidence.json")
EVIDENCE = sorted(GOLDEN.rglob("*.evidence.json"))


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.name.split(".")[0])
def test_what_the_tools_say_changes_only_on_purpose(path, capsys) -> None:
    jsonschema.validate(json.loads(path.read_text()), load("evidence"))
    assert main(["findings", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = path.with_name(path.name.replace(".evidence.", ".findings."))
    assert told == json.loads(expected.read_text())
    for finding in told["findings"]:
        jsonschema.validate(finding, load("finding"))


def test_the_evidence_files_are_what_the_recorded_profiles_give() -> None:
    """If not: python scripts/regen_golden.py findings, and look at the difference."""
    files = runpy.run_path(str(GOLDEN / "regen_findings.py"))["golden_findings"]()
    assert {name: (GOLDEN / name).read_text() for name in files} == files


def test_a_person_sees_the_finding_its_cause_and_its_fixes(capsys) -> None:
    assert main(["findings", UNCOALESCED]) == 0
    out = capsys.readouterr().out
    assert "1. CRITICAL  memory_coalescing: Uncoalesced global memory  (k)" in out
    assert "   cause: The lanes of a warp touch scattered sectors." in out
    assert "   - Stage a tile through shared memory, and transpose it there." in out
    assert "silent without a timeline: gpu_idle_gap" in out
    assert "not asked, for other classes: divergence" in out


def test_the_modes_are_those_of_the_ablation(capsys) -> None:
    assert main(["findings", UNCOALESCED, "--json", "--feedback", "raw"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"] == []
    assert len(told["counters"]["k"]) == 52
    assert main(["findings", UNCOALESCED, "--feedback", "none", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == ""
    recorded = str(GOLDEN / "recorded" / "exp.evidence.json")
    assert main(["findings", recorded, "--feedback", "rules"]) == 0
    assert "1. HighPipeUtilization (estimated 92.58 %, local)" in capsys.readouterr().out


def test_at_most_so_many_are_shown_and_the_rest_counted(capsys) -> None:
    path = str(GOLDEN / "planted" / "hundred_launches.evidence.json")
    assert main(["findings", path, "--max", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 less severe left out" in out
    assert main(["findings", path, "--max", "0", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 2


def test_the_evidence_within_what_profile_prints_is_read(tmp_path, capsys) -> None:
    path = tmp_path / "profiled.json"
    path.write_text(
        json.dumps({"schema": 1, "evidence": json.loads(Path(UNCOALESCED).read_text())})
    )
    assert main(["findings", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["tool"] == "memory_coalescing"


def test_what_is_not_finite_is_unknown(tmp_path, capsys) -> None:
    name = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
    record = json.loads(Path(UNCOALESCED).read_text())
    record["kernels"][0]["metrics"][name] = float("nan")
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(record))
    assert main(["findings", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "memory_coalescing" not in {finding["tool"] for finding in told["findings"]}
    assert {"tool": "memory_coalescing", "missing": [name], "fault": ""} in told["silent"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected JSON"),
        ('{"schema": 1, "device"', "expected JSON"),
        ("[" * 100_000, "expected JSON"),
        ("[1, 2]", "expected a JSON object, found list"),
        ("{}", "expected schema 1, found None"),
        ('{"schema": 2}', "expected schema 1, found 2"),
        ('{"schema": 1, "device": "d", "arch": "a", "level": "nsys"}', "evidence level"),
        (
            '{"schema": 1, "device": "d", "arch": "a", "level": "ncu", "kernels": '
            '[{"name": "k", "owner": "user", "launches": 1, "metrics": {"m": "1,234"}}]}',
            "kernels.0.metrics.m",
        ),
    ],
)
def test_a_file_that_is_no_evidence_is_told_in_one_line(tmp_path, capsys, text, words) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text)
    assert main(["findings", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kopt: ")
    assert words in line
    assert len(line) < 400


def test_many_faults_are_a_few_lines(tmp_path, capsys) -> None:
    kernels = [{"name": 1, "owner": "x", "launches": "y"}] * 100
    record = {"schema": 1, "device": "d", "arch": "a", "level": "ncu", "kernels": kernels}
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(record))
    assert main(["findings", str(path)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 8
    assert lines[-1].endswith("293 more")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.json"], "cannot be read: No such file"),
        (["."], "cannot be read: Is a directory"),
        ([UNCOALESCED, "--max", "-1"], "--max: expected 0 or more, found -1"),
        ([UNCOALESCED, "--feedback", "all"], "invalid choice: 'all'"),
        ([UNCOALESCED, "--tools", "absent.py"], "absent.py: expected a Python file"),
        ([], "required: EVIDENCE"),
    ],
)
def test_a_wrong_argument_is_told_in_one_line(capsys, arguments, words) -> None:
    assert main(["findings", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_no_torch_and_no_ray_are_loaded() -> None:
    code = (
        "import sys; from kopt.cli.dispatch import main; "
        f"main(['findings', {UNCOALESCED!r}, '--json']); "
        "print(sorted({'ray', 'torch', 'triton', 'numpy', 'hydra'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"
