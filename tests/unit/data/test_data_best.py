"""best/: files that a person can use, and a verify.py that needs PyTorch alone."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

from kopt.candidate import Candidate
from kopt.data.best import best_folders, rank_candidates, write_best
from kopt.data.fold import RunState, fold
from kopt.data.journal import Journal, read_events
from kopt.data.rundir import RunDir
from kopt.errors import StoreError
from kopt.ladder import LADDER_NAMES, LADDERS, Distances, LadderName, failure
from kopt.problem import Problem
from kopt.testing.fakes import ManualClock, correct, source_candidate
from kopt.testing.sample_journal import write_search
from kopt.verdict import Crashed, Verdict

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.norm = nn.BatchNorm1d(size)

    def forward(self, x):
        return self.norm(self.linear(x)).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return [32]
"""
RIGHT = REFERENCE.replace("class Model(", "class ModelNew(").replace("self.norm", "self.other")
WRONG = RIGHT.replace(".sum(dim=1)", ".sum(dim=1) * 1.001")
RAISES = RIGHT.replace("return self", "raise RuntimeError('no such kernel')\n        return self")
PROBLEM = Problem(name="mine/linear sum", source=REFERENCE)


def run_with(
    folder: Path,
    *slots: tuple[Candidate, Verdict],
    problem: Problem = PROBLEM,
    seed: int = 0,
) -> tuple[RunDir, RunState]:
    """A run folder with one search that told these."""
    run = RunDir(folder)
    run.path.mkdir(exist_ok=True)
    run.keep_problem(problem)
    with Journal(folder, run="run", clock=ManualClock()) as sink:
        write_search(sink, problem=problem, seed=seed, expansions=[[slot] for slot in slots])
    return run, fold(read_events(folder))


def verify(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "verify.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder.parent)


def test_the_fastest_distinct_correct_candidates_are_ranked(tmp_path: Path) -> None:
    slow, fast, faster, equal = (source_candidate(name) for name in "abcd")
    run_with(tmp_path, (slow, correct(1.5)), (fast, correct(2.0)), (equal, correct(2.0)))
    run, state = run_with(
        tmp_path,
        (fast, correct(8.0)),  # judged before: its first figures count
        (faster, correct(3.0)),
        (source_candidate("e"), Crashed(stage="timing", log="")),
        seed=1,
    )
    (ranked,) = rank_candidates(state).values()
    assert [entry.made.candidate for entry in ranked] == [
        candidate.candidate_id for candidate in (faster, fast, equal, slow)
    ]
    written = write_best(run, state, keep=3)
    folder = tmp_path / "best" / "mine-linear-sum"
    assert written == {PROBLEM.problem_id: [folder / f"rank{rank}.py" for rank in (1, 2, 3)]}
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.txt",
        "rank1.json",
        "rank1.py",
        "rank2.json",
        "rank2.py",
        "rank3.json",
        "rank3.py",
        "reference.py",
        "verify.py",
    ]


def test_a_ranked_file_is_byte_for_byte_what_was_judged(tmp_path: Path) -> None:
    candidate = source_candidate("# é\r\nclass ModelNew: ...", strategy="fuse all")
    run, state = run_with(tmp_path, (candidate, correct(2.0)))
    ((path,),) = write_best(run, state).values()
    assert path.read_bytes() == candidate.source.encode()
    record = json.loads(path.with_suffix(".json").read_text())
    source = path.read_bytes().decode()
    rebuilt = Candidate(source=source, language=record["language"]).candidate_id
    assert record["candidate"] == rebuilt == candidate.candidate_id
    assert (record["kind"], record["speedup"]) == ("correct", 2.0)
    assert (record["strategy"], record["programmer"]) == ("fuse all", "scripted")
    assert record["search"] == "mine/linear sum/arm/0"


def test_writing_again_replaces_what_is_no_longer_best(tmp_path: Path) -> None:
    run, state = run_with(
        tmp_path, (source_candidate("a"), correct(1.5)), (source_candidate("b"), correct(2.0))
    )
    folder = tmp_path / "best" / "mine-linear-sum"
    write_best(run, state, keep=2)
    (folder / "rank1.py").write_text("half a fi")  # a writer died here
    write_best(run, state, keep=1)
    assert (folder / "rank1.py").read_text() == "b"
    assert not list(folder.glob("rank2.*"))


def test_a_problem_without_a_correct_candidate_has_no_folder(tmp_path: Path) -> None:
    run, state = run_with(tmp_path, (source_candidate("a"), Crashed(stage="timing", log="")))
    assert write_best(run, state) == {}
    assert not run.best_folder.exists()


@pytest.mark.parametrize("name", ["..", ".", "/", ""])
def test_no_problem_is_named_out_of_the_folder(tmp_path: Path, name: str) -> None:
    problem = Problem(name=name, source=REFERENCE)
    run, state = run_with(tmp_path, (source_candidate("a"), correct(2.0)), problem=problem)
    write_best(run, state)
    (folder,) = run.best_folder.iterdir()
    assert folder.name == problem.problem_id[:12]


def test_two_problems_of_one_file_name_have_a_folder_each(tmp_path: Path) -> None:
    other = Problem(name="mine-linear-sum", source=REFERENCE + "\n")
    run_with(tmp_path, (source_candidate("a"), correct(2.0)))
    run, state = run_with(tmp_path, (source_candidate("b"), correct(3.0)), problem=other)
    assert [path.name for path in best_folders(run, state).values()] == [
        "mine-linear-sum",
        f"mine-linear-sum-{other.problem_id[:12]}",
    ]
    assert {path.read_text() for (path,) in write_best(run, state).values()} == {"a", "b"}


def test_a_problem_that_was_not_kept_is_named(tmp_path: Path) -> None:
    run, state = run_with(tmp_path, (source_candidate("a"), correct(2.0)))
    (tmp_path / "problems" / f"{PROBLEM.problem_id}.json").unlink()
    with pytest.raises(StoreError, match=PROBLEM.problem_id):
        write_best(run, state)


def test_verify_tells_right_from_wrong_and_times_the_right_one(tmp_path: Path) -> None:
    run, state = run_with(
        tmp_path,
        (source_candidate(RIGHT), correct(3.0)),
        (source_candidate(WRONG), correct(2.0)),
        (source_candidate(RAISES), correct(1.5)),
    )
    ((first, *_),) = write_best(run, state).values()
    # No kopt on the path: the folder stands alone.
    everything = verify(first.parent)
    right, wrong, raises = everything.stdout.splitlines()
    assert right.startswith("mine/linear sum rank1.py: right on 3 fresh seeds; ")
    assert "us eager" in right
    assert right.endswith("(claimed 3x)")
    assert "rank2.py: seed " in wrong
    assert "against float64" in wrong
    assert raises.endswith("rank3.py: RuntimeError: no such kernel")
    assert everything.returncode == 1
    only_right = verify(first.parent, "1", "--skip-timing", "--seeds", "1")
    assert only_right.stdout == "mine/linear sum rank1.py: right on 1 fresh seeds\n"
    assert (only_right.returncode, only_right.stderr) == (0, "")


@pytest.mark.parametrize("name", LADDER_NAMES)
def test_verify_judges_by_the_ladders_own_rule(name: LadderName) -> None:
    template = (files("kopt.data") / "best_verify.py.txt").read_text(encoding="utf-8")
    script: dict[str, Any] = {"__name__": "verify", "__file__": __file__}
    exec(template, script)
    ladder = LADDERS[name]
    verdicts = set()
    for scale, own, error in product(
        (1e-9, 1.0, 1e3), (0.0, 3e-9, 1e-6, 1e-2), (0.0, 5e-9, 2e-8, 9e-6, 1e-3, 4e-3, 0.2)
    ):
        exact = torch.tensor([scale], dtype=torch.float64)
        reference, out = exact + own, exact + error
        distances = Distances(
            candidate=(out - exact).abs().item(),
            reference=(reference - exact).abs().item(),
            scale=scale,
            excess=((out - reference).abs() - ladder.rtol * reference.abs()).item(),
        )
        said = script["difference"](out, reference, exact, ladder=asdict(ladder))
        assert (said == "") is (failure(distances, ladder) is None), (scale, own, error, said)
        verdicts.add(said == "")
    assert verdicts == {True, False}
