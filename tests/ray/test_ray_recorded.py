"""A run of the rewriter, played again by `programmer=recorded`; its best as another run's seed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

from kopt.cli import main
from kopt.data.fold import fold
from kopt.data.journal import read_events
from kopt.data.rundir import RunDir
from kopt.driver.replay import replay
from kopt.events import EventBody

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def kopt_run(
    folder: Path, name: str, *words: str, problem: str = "sums.py"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kopt", "run", f"problem={problem}", "out=.", f"name={name}"]
    return subprocess.run(
        [*command, *words, "--json"], capture_output=True, text=True, check=False, cwd=folder
    )


def events(run: Path) -> list[tuple[str, EventBody]]:
    return [(record.search, record.body) for record in read_events(run)]


def made(run: Path) -> list[str]:
    return [body.candidate for _, body in events(run) if body.kind == "candidate_made"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, first_run: Path, sums: str) -> Path:
    """A folder with a problem, and with a run of it that was made elsewhere."""
    path = tmp_path_factory.mktemp("recorded")
    (path / "sums.py").write_text(sums)
    shutil.copytree(first_run, path / "first")
    assert len(made(path / "first")) >= 4
    return path


def test_a_run_is_played_again_with_its_verdicts(
    folder: Path, quick: tuple[str, ...], running_ray: Cluster
) -> None:
    again = kopt_run(
        folder,
        "again",
        *quick,
        "programmer=recorded",
        "programmer.run=first",
        "programmer.verdicts=true",
        f"cluster.address={running_ray.address}",
    )
    assert again.returncode == 0, again.stderr
    first_events, again_events = events(folder / "first"), events(folder / "again")
    assert sorted(map(repr, again_events)) == sorted(map(repr, first_events))
    operations = [
        [(search, body) for search, body in each if body.kind in ("expansion_asked", "told")]
        for each in (first_events, again_events)
    ]
    assert operations[0] == operations[1], "the same tree, grown in the same order"
    assert replay(fold(read_events(folder / "again")))
    device = RunDir(folder / "again").read_manifest()["device"]
    assert device["recorded_in"] == "first"
    summary = json.loads(again.stdout)
    assert summary["run"]


@pytest.mark.soak
def test_the_same_candidates_are_judged_here_anew(folder: Path, quick: tuple[str, ...]) -> None:
    anew = kopt_run(folder, "anew", *quick, "programmer=recorded", "programmer.run=first")
    assert anew.returncode == 0, anew.stderr
    assert made(folder / "anew") == made(folder / "first")
    evaluations = [
        [body.eval["timeline_s"] for _, body in events(folder / name) if body.kind == "verdict"]
        for name in ("anew", "first")
    ]
    assert evaluations[0] != evaluations[1], "measured anew"


def refused(name: str, *words: str, said: pytest.CaptureFixture[str]) -> str:
    """Return the one line that a run says which is refused, in this process: nothing is started."""
    assert main(["run", "problem=sums.py", "out=.", f"name={name}", *words, "--json"]) == 2
    (line,) = said.readouterr().err.splitlines()
    return line


def test_a_recording_that_is_not_there_is_one_line_and_leaves_no_folder(
    folder: Path,
    quick: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    lost = ("programmer=recorded", "programmer.run=nowhere")
    line = refused("lost", *quick, *lost, said=capfd)
    assert line == "kopt: nowhere: expected a run folder, found no manifest.json in it"
    assert not (folder / "lost").exists()


@pytest.mark.soak  # what it says is tested with the programmer, and how a run of failures ends too
def test_another_problem_fails_its_search_with_what_there_is(
    folder: Path, quick: tuple[str, ...], sums: str
) -> None:
    (folder / "other.py").write_text(sums.replace("* 2.0", "* 3.0"))
    other = kopt_run(
        folder,
        "other",
        *quick,
        "programmer=recorded",
        "programmer.run=first",
        problem="other.py",
    )
    assert other.returncode == 1
    assert "first has no answers for other, arm same, seed 0: its problems are sums" in other.stderr
    assert "Traceback" not in other.stderr


@pytest.mark.soak
def test_an_earlier_runs_best_is_the_first_idea(folder: Path, quick: tuple[str, ...]) -> None:
    best = folder / "first" / "best" / "sums" / "rank1.py"
    seeded = kopt_run(folder, "seeded", *quick, "search.iterations=2", "search.seeds=[first]")
    assert seeded.returncode == 0, seeded.stderr
    bodies = [body for _, body in events(folder / "seeded") if body.kind == "candidate_made"]
    labels = {(body.expansion, body.index): body.programmer for body in bodies}
    assert labels[0, 0] == "seed"
    assert set(labels.values()) == {"seed", "rewriter"}
    seed = next(body for body in bodies if body.programmer == "seed")
    assert RunDir(folder / "seeded").artefacts.get(seed.source) == best.read_text()


def test_a_seed_that_is_not_there_is_one_line_and_leaves_no_folder(
    folder: Path,
    quick: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    line = refused("unseeded", *quick, "search.seeds=nowhere.py", said=capfd)
    assert line.startswith("kopt: no such file: nowhere.py")
    assert not (folder / "unseeded").exists()
