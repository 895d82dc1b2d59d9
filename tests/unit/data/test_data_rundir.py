"""The run folder: made once, never overwritten; manifest and problems are whole or not there."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from kopt.data.journal import Journal
from kopt.data.manifest import cpu_model, make_manifest, resumed, seed_commitment, versions
from kopt.data.rundir import RunDir
from kopt.errors import ConfigError, StoreError
from kopt.events import RunEnded
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock
from kopt.version import __version__

CLOCK = ManualClock(1_700_000_000_000_000_000)  # 2023-11-14 22:13:20 UTC
PROBLEM = Problem(name="p", source="class Model: 'é'", dtype="float16", family="norm")


def test_a_run_is_named_after_the_time_and_a_second_one_beside_it(tmp_path: Path) -> None:
    names = [RunDir.create(tmp_path / "runs", clock=CLOCK).name for _ in range(3)]
    assert names == ["2023-11-14_22-13-20", "2023-11-14_22-13-20-2", "2023-11-14_22-13-20-3"]


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    RunDir.create(tmp_path, "mine", clock=CLOCK)
    with pytest.raises(ConfigError, match=r"name=mine: .*exists; .*kopt resume .*/mine"):
        RunDir.create(tmp_path, "mine", clock=CLOCK)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/tmp/x", "a/"])
def test_a_name_is_a_plain_folder_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="expected a plain folder name"):
        RunDir.create(tmp_path, name, clock=CLOCK)


def test_a_root_that_is_a_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(StoreError, match=r"runs: (File exists|Not a directory)"):
        RunDir.create(tmp_path / "runs", clock=CLOCK)


def test_only_a_run_folder_can_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"expected a run folder, found no manifest\.json in it"):
        RunDir.open(tmp_path)
    run = RunDir.create(tmp_path, "mine", clock=CLOCK)
    run.write_manifest({"name": "mine"})
    assert RunDir.open(tmp_path / "mine").read_manifest() == {"name": "mine"}


def test_a_problem_comes_back_with_its_labels(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "mine", clock=CLOCK)
    run.keep_problem(PROBLEM)
    run.keep_problem(PROBLEM)
    assert run.problem(PROBLEM.problem_id) == PROBLEM


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object, found list"),
        ('{"name": "p"}', "not a problem"),
        ('{"name": "p", "source": "other"}', "damaged: it holds problem"),
    ],
)
def test_a_damaged_problem_is_named(tmp_path: Path, text: str, words: str) -> None:
    run = RunDir.create(tmp_path, "mine", clock=CLOCK)
    run.keep_problem(PROBLEM)
    (path,) = run.problems_folder.iterdir()
    path.write_text(text)
    with pytest.raises(StoreError, match=words):
        run.problem(PROBLEM.problem_id)


def test_the_status_follows_the_run(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path, "mine", clock=CLOCK)
    assert run.status() == "interrupted"
    for failed, status in ((0, "ended"), (2, "failed")):
        with Journal(run.path, run="mine", clock=CLOCK) as journal:
            assert run.status() == "running"
            journal.append("", RunEnded(failed=failed))
        assert run.status() == status


def test_the_manifest_says_what_ran_and_keeps_the_secret() -> None:
    manifest = make_manifest(
        {"seed": [0]},
        name="mine",
        created_ns=1_700_000_000_000_000_000,
        argv=["kopt", "run"],
        device={"name": "cpu"},
        secret=12_345,
    )
    assert manifest["created"] == "2023-11-14T22:13:20+00:00"
    assert manifest["config"] == {"seed": [0]}
    assert manifest["argv"] == ["kopt", "run"]
    commitment = hashlib.sha256(b"kopt seed 12345").hexdigest()
    assert manifest["seed_commitment"] == commitment == seed_commitment(12_345)
    assert "12345" not in json.dumps({**manifest, "seed_commitment": ""})


def test_a_resumed_run_keeps_its_manifest_and_adds_what_differs() -> None:
    first = {"created": "1", "argv": ["run"], "versions": {"ray": "2.60"}, "config": {"a": 1}}
    second = {**first, "created": "2", "argv": ["resume"]}
    third = {**first, "created": "3", "argv": ["resume"], "config": {"a": 2}}
    once = resumed(first, second)
    assert once == {**first, "resumes": [{"created": "2", "argv": ["resume"]}]}
    assert resumed(once, third)["resumes"] == [
        {"created": "2", "argv": ["resume"]},
        {"created": "3", "argv": ["resume"], "config": {"a": 2}},
    ]


def test_versions_are_read_without_importing_anything() -> None:
    before = set(sys.modules)
    found = versions()
    assert found["kopt"] == __version__
    assert found["python"] == sys.version.split()[0]
    assert found["pyarrow"]
    assert not {"torch", "ray", "triton"} & (set(sys.modules) - before)


def test_the_cpu_has_a_name() -> None:
    assert cpu_model()
