"""What one forward call runs on the device, by torch's own record of its activity.

On a GPU: CUPTI's kernels, copies and fills, of every stream. On a CPU: torch's operations on the
calling thread and the time between them, which is the candidate's where it has code of its own in
the process.

This is the child's own report, and candidate code in here can make it lie: patch what is bound
below, tell that a record is made and run something else, name a kernel as its own, keep library
calls out of sight (on a CPU: on a thread of its own). What it gains is a place on the track
`kernels`, and not to be told that it fell back; its values and its time rest on other checks. The
supervisor holds the record against the time it knows, and names against the candidate's text and
build (supervisor/provenance.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter  # bound before a candidate could patch the time module
from typing import Any

from torch.autograd.profiler import profile, record_function

from kopt.actors.child.op_times import call_times, merged, own_time
from kopt.actors.child.own_code import own_binaries
from kopt.actors.devices.base import Device
from kopt.provenance import MEMCPY, MEMSET
from kopt.tools.collect.kineto import parse_trace
from kopt.tools.collect.trace_events import CALL_MARK, read_events
from kopt.tools.collect.unreadable import Remarks, UnreadableProfile

MOST_CALLS = 7
"""Calls on a CPU, the least disturbed of which counts."""
ENOUGH_S = 0.2
"""No further call is begun after this."""
MOST_ENTRIES = 128
"""Kernels or operations that are named; the time of the rest is summed up."""
NAME_CHARACTERS = 1_000
"""Of one name."""


def recorded(device: Device, call: Callable[[], object], *, seed: int) -> dict[str, Any]:
    """Run the module under a record of its activity, and return what one call ran.

    Args:
        device: that it runs on.
        call: runs the module once.
        seed: set before each call.

    Returns:
        `ran`, a list of [name, launches, time_us], the longest first; `rest_us`, `own_us`,
        `unsure_us`, `span_us` as in `kopt.activity.Activity`; or `why` there is no record.
    """
    path = Path.cwd() / "activity.json"
    try:
        if device.name == "cuda":
            _record(device, call, seed=seed, path=path, most=1)
            return _of_gpu(path)
        _record(device, call, seed=seed, path=path, most=MOST_CALLS)
        return _of_cpu(path)
    except (UnreadableProfile, OSError, RuntimeError) as error:
        return {"why": f"{type(error).__name__}: {error}"[:NAME_CHARACTERS]}
    finally:
        path.unlink(missing_ok=True)


def _record(
    device: Device, call: Callable[[], object], *, seed: int, path: Path, most: int
) -> None:
    device.seed(seed)
    call()
    device.check()
    on_gpu = device.name == "cuda"
    with profile(
        use_cpu=not on_gpu, use_device="cuda" if on_gpu else None, use_kineto=True
    ) as made:
        began_s = perf_counter()
        for _ in range(most):
            device.seed(seed)
            # The output goes after the call's end: freeing it is none of the call's.
            with record_function(CALL_MARK):
                out = call()
            del out
            if perf_counter() - began_s > ENOUGH_S:
                break
        device.check()
    made.export_chrome_trace(str(path))


def _of_gpu(path: Path) -> dict[str, Any]:
    report = parse_trace(path.read_text(encoding="utf-8", errors="replace"))
    ran = [(each.name, each.launches, each.time_us) for each in report.kernels]
    copies = ((MEMCPY, report.timeline.memcpy_us), (MEMSET, report.timeline.memset_us))
    ran += [(name, 1, us) for name, us in copies if us]
    return _answer(ran, span_us=report.timeline.busy_us or 0.0)


def _of_cpu(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8", errors="replace")
    calls = call_times(read_events(text, remarks=Remarks()))
    if not calls:
        return {"why": "the record holds no call"}
    call = merged(calls)
    ran = [(name, call.launches[name], us) for name, us in call.times_us.items()]
    outside_us, unsure_us = own_time(call.gaps_us)
    if own_binaries(build_dir=os.environ.get("KOPT_BUILD_DIR")):
        return _answer(ran, own_us=outside_us, unsure_us=unsure_us, span_us=call.span_us)
    return _answer(ran, rest_us=outside_us, span_us=call.span_us)  # a package's, such as numpy


def _answer(
    ran: list[tuple[str, int, float]], *, rest_us: float = 0.0, **times_us: float
) -> dict[str, Any]:
    longest = sorted(ran, key=lambda each: -each[2])
    return {
        "ran": [[name[:NAME_CHARACTERS], *rest] for name, *rest in longest[:MOST_ENTRIES]],
        "rest_us": rest_us + sum(us for _, _, us in longest[MOST_ENTRIES:]),
        **times_us,
    }
