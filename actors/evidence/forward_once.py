"""The program that ncu starts: loads candidates, warms them up, and runs one forward of each.

Only that one forward lies between cudaProfilerStart and cudaProfilerStop, after warm-up and
autotuning. Several candidates run in processes of their own, forked one after the other from this
one, which has torch loaded and no device context; ncu then starts and reads its counters once.

Run as `python -m kopt.actors.evidence.forward_once BEGAN_S OWNER ARCH FILE`: when it was started,
seconds since the epoch; the process that it works for; the GPU's architecture, `-` where it is not
known; and the JSON file with the jobs (`ncu.NcuRun`), for which it waits.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from kopt.actors.child.preload import load_triton
from kopt.actors.child.sandbox.landlock import devices, write_only_below
from kopt.actors.child.sandbox.limits import die_first, limit_process
from kopt.actors.child.sandbox.privileges import die_with_parent, forbid_new_privileges
from kopt.actors.devices.base import open_device
from kopt.actors.evidence.forward import load_forward, warm
from kopt.actors.evidence.laps import Laps, stage_seconds
from kopt.actors.evidence.order import order_from_json

STAGES = "stages.json"
"""File in a job's folder: how long each stage took, seconds."""
LOOK_S = 0.01
"""Between two looks whether the jobs are there."""
MAX_WORDS = 2_000
"""Characters of what is said of a failure."""


def main() -> int:
    """Run each job of the task; say in its report which process it was, and what failed."""
    began_s, owner, arch, task_file = sys.argv[1:]
    # Once, for every job: the key of its cache is the hash of half a gigabyte. Versions of programs
    # are left to the jobs: ncu follows each process, and with those of some run here the first
    # device took five seconds more to open.
    load_triton("" if arch == "-" else arch, runs_programs=False)
    gc.freeze()  # or half a second goes, as each process ends, into taking torch's objects apart
    start = {"start": time.time() - float(began_s)}
    task = _awaited(Path(task_file), owner=int(owner))
    if task is None:
        return 1
    with Path(task["report"]).open("a", encoding="utf-8") as report:  # a job may be confined here
        for job in task["jobs"]:
            job_began_s = time.monotonic()
            if task["forks"]:
                pid, failed = _forked(job, limit_s=task["job_s"], not_its=report.fileno())
            else:
                pid, failed = os.getpid(), _run(job)
            stages = _stages(job)
            if stages:
                stages["exit"] = time.monotonic() - job_began_s - sum(stages.values())
            said = {"pid": pid, "failed": failed, "at_s": time.time()}
            report.write(json.dumps(said | {"took_s": {**start, **stages}}) + "\n")
            report.flush()
            start = {}
    return 0


def _awaited(task_file: Path, *, owner: int) -> dict[str, Any] | None:
    """The task, once it is there; None where whoever should bring it is gone."""
    while not task_file.exists():
        if not Path(f"/proc/{owner}").exists():
            return None
        time.sleep(LOOK_S)
    task: dict[str, Any] = json.loads(task_file.read_text(encoding="utf-8"))
    return task


def _forked(job: dict[str, Any], *, limit_s: float, not_its: int) -> tuple[int, str]:
    """Run a job in a process of its own; return its id, and what failed.

    Args:
        job: what is run.
        limit_s: until it is killed.
        not_its: a descriptor of ours that it must not write to.
    """
    said = Path(job["folder"]) / "failed.txt"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, not_its)  # its number stays taken: it is closed again at the end
            os.close(null)
            failed = _run(job)
            if failed:
                said.write_text(failed, encoding="utf-8", errors="replace")
            code = 1 if failed else 0
        finally:
            sys.stdout.flush()
            # The profiler writes its records as the process ends by itself.
            os._exit(code) if code else sys.exit(0)
    deadline_s = time.monotonic() + limit_s
    while time.monotonic() < deadline_s:
        waited, status = os.waitpid(pid, os.WNOHANG)
        if waited:
            ended = os.waitstatus_to_exitcode(status)
            words = said.read_text("utf-8", "replace")[:MAX_WORDS] if said.is_file() else ""
            return pid, words or (f"its process ended with {ended}" if ended else "")
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid, f"did not end within {limit_s:g} s"


def _run(job: dict[str, Any]) -> str:
    """Run a job here, confined; return what failed."""
    laps = Laps()
    try:
        os.environ.update(job["environment"])
        os.chdir(job["folder"])
        order = order_from_json(job["order"])
        torch.cuda.init()  # type: ignore[no-untyped-call]
        laps.passed("init")  # of the driver, and of ncu in it
        device = open_device("cuda")  # and with it the profiler, which is confined from then on
        device.set_up(
            num_threads=order.num_threads,
            matmul_tf32=order.matmul_tf32,
            cudnn_tf32=order.cudnn_tf32,
        )
        _confine(job)
        laps.passed("open")
        with torch.no_grad():
            forward = load_forward(order, device=device, folder=Path(job["folder"]))
            forward.reference = None
            laps.passed("load")
            warm(forward, device)
            laps.passed("warm")
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
            forward.run()
            device.check()
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
            laps.passed("count")
        Path(job["folder"], STAGES).write_text(json.dumps(laps.took_s), encoding="utf-8")
    except BaseException as error:  # noqa: BLE001 - the process boundary: all is reported
        return "".join(traceback.format_exception(error))[-MAX_WORDS:]
    return ""


def _stages(job: dict[str, Any]) -> dict[str, float]:
    """How long a job's stages took, as it wrote; empty where it did not get to its end."""
    try:
        with Path(job["folder"], STAGES).open(encoding="utf-8", errors="replace") as file:
            return stage_seconds(json.loads(file.read(MAX_WORDS)))
    except (OSError, ValueError):
        return {}


def _confine(job: dict[str, Any]) -> None:
    """Forbid what ncu does not need: it needs its user, its files and its sockets."""
    die_first()
    limit_process(memory_bytes=None, by_data=True, cpu_s=job["cpu_s"])
    forbid_new_privileges()
    if job["landlock"]:
        write_only_below([*job["writable"], *devices()])


if __name__ == "__main__":
    sys.exit(main())
