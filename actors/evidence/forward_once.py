"""The program that ncu starts: loads candidates, warms them up, and runs one forward of each.

Only that one forward lies between cudaProfilerStart and cudaProfilerStop, after warm-up and
autotuning. Several candidates run in processes of their own, forked one after the other from this
one, which has torch loaded and no device context; ncu then starts and reads its counters once.

Run as `python -m kopt.actors.evidence.forward_once FILE`, FILE the JSON of an `NcuTask`.
"""

from __future__ import annotations

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
from kopt.actors.evidence.forward import load_forward
from kopt.actors.evidence.in_child import warm
from kopt.actors.evidence.order import order_from_json

STAGES = "stages.json"
"""File in a job's folder: how long each stage took, seconds."""
MAX_WORDS = 2_000
"""Characters of what is said of a failure."""


def main() -> int:
    """Run each job of the task; say in its report which process it was, and what failed."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    load_triton()  # once, for every job: the key of its cache is the hash of half a gigabyte
    start = {"start": time.time() - task["began_s"]} if "began_s" in task else {}
    report = Path(task["report"])
    for job in task["jobs"]:
        if task["forks"]:
            pid, failed = _forked(job, limit_s=task["job_s"])
        else:
            pid, failed = os.getpid(), _run(job)
        said = {"pid": pid, "failed": failed, "took_s": {**start, **_stages(job)}}
        with report.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(said) + "\n")
        start = {}
    return 0


def _forked(job: dict[str, Any], *, limit_s: float) -> tuple[int, str]:
    """Run a job in a process of its own; return its id, and what failed."""
    said = Path(job["folder"]) / "failed.txt"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent()
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
    took_s: dict[str, float] = {}
    last_s = time.monotonic()

    def passed(stage: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        took_s[stage], last_s = now_s - last_s, now_s

    try:
        os.environ.update(job["environment"])
        os.chdir(job["folder"])
        order = order_from_json(job["order"])
        device = open_device("cuda")  # and with it the profiler, which is confined from then on
        device.set_up(
            num_threads=order.num_threads,
            matmul_tf32=order.matmul_tf32,
            cudnn_tf32=order.cudnn_tf32,
        )
        _confine(job)
        passed("open")
        with torch.no_grad():
            forward = load_forward(order, device=device, folder=Path(job["folder"]))
            forward.reference = None
            passed("load")
            warm(forward, device)
            passed("warm")
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
            forward.run()
            device.check()
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
            passed("count")
        Path(job["folder"], STAGES).write_text(json.dumps(took_s), encoding="utf-8")
    except BaseException as error:  # noqa: BLE001 - the process boundary: all is reported
        return "".join(traceback.format_exception(error))[-MAX_WORDS:]
    return ""


def _stages(job: dict[str, Any]) -> dict[str, Any]:
    """How long a job's stages took, as it wrote; empty where it did not get to its end."""
    try:
        with Path(job["folder"], STAGES).open(encoding="utf-8", errors="replace") as file:
            said = json.loads(file.read(MAX_WORDS))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _confine(job: dict[str, Any]) -> None:
    """Forbid what ncu does not need: it needs its user, its files and its sockets."""
    die_first()
    limit_process(memory_bytes=None, by_data=True, cpu_s=job["cpu_s"])
    forbid_new_privileges()
    if job["landlock"]:
        write_only_below([*job["writable"], *devices()])


if __name__ == "__main__":
    sys.exit(main())
