"""Finding out what a machine has of profilers, by using each on a tiny problem.

Once for each driver and set of tools; what was found is kept (`capabilities`). ncu starts, and
lists the GPU's metrics, while the timeline is tried. Run as
`python -m kopt.actors.evidence.probe DEVICE CACHE_DIR`, it looks and writes what it found there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.evidence.capabilities import (
    Ability,
    Capabilities,
    fingerprint,
    load_capabilities,
    ncu_version,
    save_capabilities,
)
from kopt.actors.evidence.command import run_command
from kopt.actors.evidence.ncu import Counted, NcuMeans, NcuRun, count
from kopt.actors.evidence.nvml import nvml_ability
from kopt.actors.evidence.tool_paths import find_tool
from kopt.actors.evidence.workbench import Workbench
from kopt.actors.supervisor.child import ChildFailed
from kopt.problem import Problem
from kopt.tools.collect.host_trace import parse_host_trace
from kopt.tools.collect.kineto import parse_trace
from kopt.tools.collect.ncu_names import known_counters, parse_metric_names, refused_counter
from kopt.tools.collect.unreadable import UnreadableProfile
from kopt.tools.counters import CORE_COUNTERS

LOOK_S = 120.0
QUERY_S = 60.0
PERMISSION = "no permission to read GPU counters"
TINY = Problem(
    name="probe",
    source="""\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x)


def get_inputs():
    return [torch.rand(1 << 16)]
""",
)
"""One elementwise kernel."""
OF_GPUS = Ability(
    ok=False, found="of GPUs alone", fix="a machine with an NVIDIA GPU, its driver and tools"
)
FIXES = {
    PERMISSION: "run as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
    "sandbox": "the container's runtime does not pass counters through; run kopt on the host",
}


def probe(
    device: DeviceName, *, cache_dir: Path, workbench: Workbench | None = None
) -> Capabilities:
    """Return what this machine has, from what is kept or by looking.

    Args:
        device: kind of device.
        cache_dir: kopt's cache.
        workbench: to look with; None starts one.
    """
    kept = load_capabilities(cache_dir, device=device)
    if kept is not None:
        return kept
    bench = workbench or Workbench(
        EvaluateConfig(), device=device, cache_dir=cache_dir, is_lasting=False
    )
    try:
        found = _look(bench)
    finally:
        if workbench is None:
            bench.close()
    save_capabilities(found, cache_dir)
    return found


def _look(bench: Workbench) -> Capabilities:
    if bench.device == "cpu":
        return Capabilities(
            device="cpu",
            fingerprint=fingerprint("cpu"),
            counters=OF_GPUS,
            timeline=_timeline(bench),
            disassembly=_disassembler("objdump", fix="install GNU binutils"),
            energy=OF_GPUS,
            roof=_roof(bench),
        )
    path = find_tool("ncu")
    with _begun(bench, path) as begun, ThreadPoolExecutor(max_workers=2) as aside:
        listed = aside.submit(_counter_names, path)
        energy = aside.submit(nvml_ability)
        timeline = _timeline(bench)
        counters, means, missing = _counters(bench, names=listed.result(), begun=begun)
    return Capabilities(
        device="cuda",
        fingerprint=fingerprint("cuda"),
        counters=counters,
        timeline=timeline,
        disassembly=_disassembler(
            "cuobjdump", fix="install the CUDA toolkit or triton, which ships it"
        ),
        energy=energy.result(),
        ncu_path=None if means is None else means.path,
        ncu_forks=means is not None and means.forks,
        ncu_landlock=means is not None and means.landlock,
        counter_names=() if means is None else means.counters,
        missing_counters=missing,
    )


@contextmanager
def _begun(bench: Workbench, path: str | None) -> Iterator[tuple[NcuMeans, NcuRun] | None]:
    """A run of ncu by the best means, begun before it is known whether they are to be had."""
    if path is None:
        yield None
        return
    means = NcuMeans(path=path, counters=CORE_COUNTERS, forks=True, landlock=True)
    with bench.folder() as folder:
        run = NcuRun(means, folder=folder, arch=bench.arch)
        run.begin(bench.ncu_environment(folder))
        try:
            yield means, run
        finally:
            run.close()


def _timeline(bench: Workbench) -> Ability:
    fix = "torch's profiler needs CUPTI: a CUDA build of torch, and a driver that allows tracing"
    try:
        report = bench.observe(TINY, bench.order(TINY, None), timeout_s=LOOK_S)
        text = str(report.get("trace", ""))
        trace = parse_host_trace(text) if bench.device == "cpu" else parse_trace(text)
    except (ChildFailed, UnreadableProfile) as error:
        return Ability(ok=False, found=_last_line(error), fix=fix)
    if not trace.kernels:
        return Ability(ok=False, found="it shows no kernel", fix=fix)
    return Ability(ok=True, found=f"a call of one operation takes {trace.timeline.e2e_us:.1f} us")


def _roof(bench: Workbench) -> dict[str, float]:
    """What the host reaches; empty where it cannot be measured."""
    try:
        found = bench.observe(TINY, bench.order(TINY, None, look="roof"), timeout_s=LOOK_S)
        return {name: float(value) for name, value in found.items()}
    except (ChildFailed, TypeError, ValueError):
        return {}


def _disassembler(name: str, *, fix: str) -> Ability:
    path = find_tool("objdump" if name == "objdump" else "cuobjdump")
    if path is None:
        return Ability(ok=False, found=f"{name} is not found", fix=fix)
    return Ability(ok=True, found=path)


def _counters(
    bench: Workbench,
    *,
    names: tuple[str, ...],
    begun: tuple[NcuMeans, NcuRun] | None = None,
) -> tuple[Ability, NcuMeans | None, tuple[str, ...]]:
    """Try ncu on a tiny kernel: with several processes first, confined first.

    Args:
        bench: to try it with.
        names: of the counters that the GPU has.
        begun: a run that is begun, and by which means.
    """
    path = find_tool("ncu")
    release = ncu_version()
    if path is None or release is None:
        fix = "install Nsight Compute, and put ncu on PATH or below /usr/local/cuda/bin"
        return Ability(ok=False, found="ncu is not found", fix=fix), None, ()
    why = ""
    for forks, landlock in ((True, True), (False, True), (False, False)):
        wanted = NcuMeans(path=path, counters=names, forks=forks, landlock=landlock)
        means, why = _accepted(bench, wanted, begun=begun)
        begun = None
        names = means.counters
        if not why:
            told = f"{release}; {len(names)} of {len(CORE_COUNTERS)} counters"
            told += "; several candidates in a run" if forks else "; one candidate a run"
            missing = tuple(name for name in CORE_COUNTERS if name not in names)
            return Ability(ok=True, found=told), means, missing
        if PERMISSION in why:
            break
    missing = tuple(name for name in CORE_COUNTERS if name not in names)
    fix = next((fix for mark, fix in FIXES.items() if mark in why), "see `ncu --help` run by hand")
    return Ability(ok=False, found=f"{release}: {why}", fix=fix), None, missing


def _accepted(
    bench: Workbench, means: NcuMeans, *, begun: tuple[NcuMeans, NcuRun] | None = None
) -> tuple[NcuMeans, str]:
    """Count a tiny kernel, without the counters that ncu refuses; return why it fails, or "".

    ncu names one counter that it does not know, and ends: it is asked again without.
    """
    while True:
        counted = _tried(bench, means, begun=begun)
        begun = None
        if counted.report is not None:
            return means, ""
        refused = refused_counter(counted.failed)
        left = tuple(name for name in means.counters if not _is_of(name, refused))
        if refused is None or len(left) in (0, len(means.counters)):
            return means, counted.failed
        means = replace(means, counters=left)


def _tried(bench: Workbench, means: NcuMeans, *, begun: tuple[NcuMeans, NcuRun] | None) -> Counted:
    """Count a tiny kernel by these means, in the run that is begun where it has the same."""
    with bench.folder() as folder:
        order = bench.order(TINY, None)
        job = bench.ncu_job(order, folder=folder, build_dir=folder, landlock=means.landlock)
        if begun is not None and begun[0] == means:
            return begun[1].count([job])[0]
        if begun is not None:
            begun[1].close()  # two of them may wait for each other
        return count([job], means=means, kernels=(), folder=folder, arch=bench.arch)[0]


def _is_of(name: str, base: str | None) -> bool:
    return base is not None and (name == base or name.startswith(f"{base}."))


def _counter_names(path: str | None) -> tuple[str, ...]:
    """Those of ours that this machine's GPU has; all where ncu does not list them."""
    if path is None:
        return CORE_COUNTERS
    try:
        done = run_command([path, "--query-metrics"], timeout_s=QUERY_S)
        return known_counters(CORE_COUNTERS, parse_metric_names(done.output))
    except (OSError, UnreadableProfile):
        return CORE_COUNTERS


def _last_line(error: Exception) -> str:
    log = error.log if isinstance(error, ChildFailed) else str(error)
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:200] if lines else str(error)


def main() -> int:
    """Look, and keep what was found."""
    device: DeviceName = "cuda" if sys.argv[1] == "cuda" else "cpu"
    probe(device, cache_dir=Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
