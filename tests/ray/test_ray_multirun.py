"""A multirun is one fleet: jobs share what is judged, one that fails ends no other, all go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ray.cluster_utils import Cluster

from kopt.data.fold import RunState, fold
from kopt.data.journal import read_events
from kopt.driver.replay import replay

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SMALL = (
    "search.iterations=2",
    "search.candidates=1",
    "evaluate.compile=false",
    "evaluate.trials=1",
    "evaluate.cache=off",
    "evaluate.timing.max_pairs=10",  # fewer claim nothing
    "name=sweep",
)
DEADLINE_S = 300.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "kopt", *words]


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "KOPT_CACHE_DIR": str(folder / "cache")},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out, err


def states(folder: Path) -> list[RunState]:
    runs = sorted(path.parent for path in (folder / "runs" / "sweep").glob("*/journal"))
    return [fold(read_events(run)) for run in runs]


def wait_for_verdicts(folder: Path, process: subprocess.Popen[str]) -> None:
    give_up_s = time.monotonic() + DEADLINE_S
    while process.poll() is None and time.monotonic() < give_up_s:
        if any(
            "verdict" in path.read_text(errors="replace")
            for path in (folder / "runs").glob("sweep/*/journal/*.jsonl")
        ):
            return
        time.sleep(0.1)  # for another process; nothing here depends on how long


def living(session: int) -> list[str]:
    """Processes of a session that are no zombies."""
    listed = subprocess.run(
        ["ps", "-s", str(session), "-o", "stat=,args="], capture_output=True, text=True, check=False
    )
    return [line for line in listed.stdout.splitlines() if not line.startswith("Z")]


def test_jobs_share_verdicts_and_one_that_fails_ends_no_other(
    tmp_path: Path, sums: str, running_ray: Cluster
) -> None:
    (tmp_path / "good.py").write_text(sums)
    broken = sums.replace("import torch\n", "import torch\nimport no_such_module\n", 1)
    (tmp_path / "bad.py").write_text(broken)
    words = ["search=best_of_n,greedy", "problem=good.py,bad.py", *SMALL]
    words.append(f"cluster.address={running_ray.address}")
    process = start(tmp_path, "run", "-m", "--json", *words)
    code, out, err = finish(process)
    assert code == 1, err
    record = json.loads(out)
    assert [job["job"] for job in record["jobs"]] == ["0", "1", "2", "3"]
    assert record["failed"] == ["1", "3"]
    good = [record["jobs"][number]["results"][0] for number in (0, 2)]
    assert [row["candidates"] for row in good] == [2, 2]
    # Both arms begin with the same idea; nothing is judged twice, though no cache is kept.
    assert sum(row["cached"] for row in good) >= 1
    for number in range(4):
        manifest = json.loads((tmp_path / f"runs/sweep/{number}/manifest.json").read_text())
        assert manifest["config"]["search"]["kind"] == ("best_of_n" if number < 2 else "greedy")


@pytest.mark.soak  # a minute; the cache itself has tests of its own
def test_an_arm_added_to_a_sweep_has_nothing_judged_again(tmp_path: Path, sums: str) -> None:
    (tmp_path / "good.py").write_text(sums)
    # All pairs of a race: an interval as wide as one pair can make that of ten is not kept.
    other = ("name=", "evaluate.cache=", "evaluate.timing.")
    small = [word for word in SMALL if not word.startswith(other)]

    def rows(name: str, searches: str) -> list[dict[str, Any]]:
        words = ("run", "-m", "--json", searches, "problem=good.py", *small, f"name={name}")
        code, out, err = finish(start(tmp_path, *words))
        assert code == 0, err
        return [job["results"][0] for job in json.loads(out)["jobs"]]

    (alone,) = rows("before", "search=best_of_n")
    assert (alone["candidates"], alone["cached"]) == (2, 0)
    again, added = rows("after", "search=best_of_n,greedy")
    assert (again["candidates"], again["cached"]) == (2, 2)
    assert again["speedup"] == alone["speedup"]
    assert added["cached"] >= 1  # the idea that both arms begin with


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_ctrl_c_stops_a_fleet_that_goes_on_as_one(
    tmp_path: Path, sums: str, running_ray: Cluster, times: int
) -> None:
    (tmp_path / "good.py").write_text(sums)
    process = start(tmp_path, "run", "-m", "search=best_of_n,greedy", "problem=good.py", *SMALL)
    wait_for_verdicts(tmp_path, process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    said = ""
    if times == 2:
        while "Ctrl-C again" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130, said + err
    assert "kopt resume runs/sweep" in said + err
    give_up_s = time.monotonic() + 30.0  # Ray's agents notice by themselves that they are alone
    while living(process.pid) and time.monotonic() < give_up_s:
        time.sleep(0.2)
    assert living(process.pid) == []

    address = f"cluster.address={running_ray.address}"  # any will do, and this one is up
    code, out, err = finish(start(tmp_path, "resume", "runs/sweep", address, "--json"))
    assert code == 0, err
    assert json.loads(out)["failed"] == []
    for state in states(tmp_path):
        (search,) = state.searches.values()
        told = [index for each in search.expansions.values() for index in each.told]
        assert len(told) == 2
        assert replay(state)
