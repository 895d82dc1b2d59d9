"""`kopt watch` on a multirun: a row for each job, those that have not begun too."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kopt.cli import main
from kopt.cli.watch_fleet import WatchedFleet
from kopt.clock import SystemClock
from kopt.data.fleet_file import FleetJob, write_fleet_file
from kopt.data.journal import Journal
from kopt.data.lanes_file import write_lanes
from kopt.data.rundir import RunDir
from kopt.lane import LaneLoad
from kopt.testing.sample_run import write_sample_run

LANE = LaneLoad(name="timing", num_calls=1, num_places=2, num_waiting=3, busy_s=5.0, began_s=0.0)


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three jobs: one ended, one interrupted, one whose turn has not come."""
    folder = tmp_path_factory.mktemp("runs") / "arms"
    folder.mkdir()
    write_sample_run(folder / "0")
    begun = RunDir(folder / "1")
    begun.path.mkdir()
    begun.write_manifest(RunDir(folder / "0").read_manifest())
    jobs = [
        FleetJob(folder=str(number), arm=arm, overrides=(f"search={arm}", "seed=0"))
        for number, arm in enumerate(("mcts", "greedy", "beam"))
    ]
    write_fleet_file(folder, jobs)
    return folder


def test_a_frame_has_a_row_for_each_job_in_eighty_columns(
    arms: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(arms)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "arms: 3 jobs, 1 waiting, 1 interrupted, 1 ended; 1 x a CPU"
    # Two arms of six problems, three expansions of two candidates each; a real run has one arm.
    assert lines[1].startswith("12 of 6 searches ended; 72 candidates told, ")
    text = "\n".join(lines)
    assert re.search(r"^mcts search=mcts +0 +12/6 +72 +\d+ +\d\.\d\dx +ended *$", text, re.M)
    assert re.search(r"^beam search=beam +2 +waiting *$", text, re.M)
    assert re.search(r"^cheated +\d+ +\d+ +job 0: ", text, re.M)


def test_the_snapshot_has_each_job_s_own(arms: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(arms), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [job["state"] for job in found["jobs"]] == ["ended", "interrupted", "waiting"]
    assert found["jobs"][0]["run"]["candidates"]["told"] == 72
    assert found["jobs"][2]["run"] is None


def test_a_job_that_begins_is_seen_with_the_lanes_that_all_share(arms: Path) -> None:
    fleet = WatchedFleet(str(arms))
    assert fleet.look()
    assert not fleet.is_driven
    assert not fleet.look()
    beam = RunDir(arms / "2")
    beam.path.mkdir()
    with Journal(beam.path, run="2", clock=SystemClock()):
        beam.write_manifest(RunDir(arms / "0").read_manifest())
        write_lanes(beam.path, [LANE], time_ns=SystemClock().now_ns())
        assert fleet.look()
        assert fleet.is_driven
        assert [job["state"] for job in fleet.snapshot()["jobs"]][2] == "running"
        assert fleet.snapshot()["jobs"][2]["run"]["lanes"][0]["name"] == "timing"
    (beam.path / "lanes.json").unlink()
    beam.manifest_path.unlink()


@pytest.mark.parametrize("words", [["--search", "a"], ["--browse"]])
def test_a_tree_is_one_job_s(
    words: list[str], arms: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(arms), *words]) == 2
    assert f"such as {arms}/0" in capfd.readouterr().err
