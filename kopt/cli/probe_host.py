"""Probes of the machine: cores, memory, room on disks, GPUs, the profiler, what the sandbox can."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kopt.cli.probe import PROBE_TIMEOUT_S, Probe, command_output, first_line, gib
from kopt.data.manifest import cpu_model

MIN_CORES = 2
MIN_MEMORY_BYTES = 4 * 2**30
MIN_SHM_BYTES = 512 * 2**20
"""Ray's object store of a local cluster (200 MB) beside the tensors of one problem."""
MIN_DISK_BYTES = 2 * 2**30

SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_CREATE_RULESET_VERSION = 1

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
UNSHARE = (
    "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True); "
    "flags = int(sys.argv[1]); sys.exit(ctypes.get_errno() if libc.unshare(flags) else 0)"
)


def host_probes(*, out: Path, cache: Path) -> list[Probe]:
    """Look at the machine, in the order shown.

    Args:
        out: where run folders go.
        cache: where builds are cached.
    """
    return [
        _cores(),
        _memory(),
        _shared_memory(),
        _disk("disk for runs", out),
        _disk("disk for the cache", cache),
        _gpu(),
        _profiler(),
        _network_namespace(),
        _landlock(),
    ]


def _cores() -> Probe:
    usable = len(os.sched_getaffinity(0))
    found = f"{usable} usable of {os.cpu_count()}, {cpu_model()}"
    if usable < MIN_CORES:
        fix = f"give it {MIN_CORES} cores: timing and building share one now"
        return Probe(name="cores", ok=False, found=found, fix=fix)
    return Probe(name="cores", ok=True, found=found)


def _memory() -> Probe:
    free = available_memory_bytes()
    if free is None:
        return Probe(name="memory", ok=True, found="unknown on this system")
    fix = "" if free >= MIN_MEMORY_BYTES else f"free some: kopt wants {gib(MIN_MEMORY_BYTES)}"
    return Probe(name="memory", ok=not fix, found=f"{gib(free)} available", fix=fix)


def available_memory_bytes() -> int | None:
    """Return what can be used now: MemAvailable, or less where a cgroup allows less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    kib = next((int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    if kib is None:
        return None
    free = kib * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - used))


def _shared_memory() -> Probe:
    path = Path("/dev/shm")
    if not path.is_dir():
        return Probe(
            name="/dev/shm", ok=False, found="not there: Ray is slow", fix="mount a tmpfs there"
        )
    free = shutil.disk_usage(path).free
    fix = "" if free >= MIN_SHM_BYTES else "enlarge it (docker run --shm-size=2g)"
    return Probe(name="/dev/shm", ok=not fix, found=f"{gib(free)} free", fix=fix)


def _disk(name: str, folder: Path) -> Probe:
    there = folder.resolve()
    while not there.exists():
        there = there.parent
    if not os.access(there, os.W_OK):
        fix = "choose another folder (out=…, KOPT_CACHE_DIR) or make it writable"
        return Probe(name=name, ok=False, found=f"{folder}: not writable", fix=fix, needed=True)
    free = shutil.disk_usage(there).free
    fix = "" if free >= MIN_DISK_BYTES else f"free some: kopt wants {gib(MIN_DISK_BYTES)}"
    return Probe(name=name, ok=not fix, found=f"{gib(free)} free for {folder}", fix=fix)


def _gpu() -> Probe:
    query = "--query-gpu=name,memory.total,driver_version"
    words = command_output(["nvidia-smi", query, "--format=csv,noheader"])
    if not words:
        return Probe(
            name="GPU",
            ok=False,
            found="nvidia-smi finds none: searches run on the CPU",
            fix="install NVIDIA's driver on a machine with a GPU (in a container: --gpus all)",
        )
    found = f"{len(words.splitlines())} x {first_line(words)}"
    if _installed_version("torch").endswith("+cpu"):
        return Probe(
            name="GPU",
            ok=False,
            found=f"{found}: torch is a build for CPUs",
            fix="install a CUDA build of torch",
        )
    return Probe(name="GPU", ok=True, found=found)


def _installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _profiler() -> Probe:
    words = command_output(["ncu", "--version"])
    if words is None:
        return Probe(
            name="ncu",
            ok=False,
            found="not found: no hardware counters",
            fix="install Nsight Compute and put ncu on PATH",
        )
    release = next((line for line in words.splitlines() if "Version" in line), first_line(words))
    if _counters_restricted():
        return Probe(
            name="ncu",
            ok=False,
            found=f"{release.strip()}: counters are for administrators only",
            fix="load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        )
    return Probe(name="ncu", ok=True, found=release.strip())


def _counters_restricted() -> bool:
    try:
        words = Path("/proc/driver/nvidia/params").read_text()
    except OSError:
        return False
    return "RmProfilingAdminOnly: 1" in words and os.geteuid() != 0


def _network_namespace() -> Probe:
    """Try, in a process of its own, to take the network away from it."""
    flags = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWUSER | CLONE_NEWNET
    try:
        answer = subprocess.run(
            [sys.executable, "-c", UNSHARE, str(flags)], timeout=PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return _no_namespace("it cannot be tried")
    if answer.returncode != 0:
        return _no_namespace(os.strerror(answer.returncode) if answer.returncode > 0 else "killed")
    return Probe(
        name="sandbox: network", ok=True, found="a process can be cut off from the network"
    )


def _no_namespace(why: str) -> Probe:
    return Probe(
        name="sandbox: network",
        ok=False,
        found=f"no network namespace ({why}): candidates can reach the network",
        fix="allow unprivileged user namespaces, or run the container with CAP_SYS_ADMIN",
    )


def _landlock() -> Probe:
    """Ask the kernel which version of Landlock it has; asking changes nothing."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(
        SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), LANDLOCK_CREATE_RULESET_VERSION
    )
    if abi < 1:
        why = os.strerror(ctypes.get_errno())
        return Probe(
            name="sandbox: files",
            ok=False,
            found=f"no Landlock ({why}) in kernel {platform.release()}",
            fix="use a kernel >= 5.13 with landlock among its LSMs",
        )
    return Probe(name="sandbox: files", ok=True, found=f"the kernel has Landlock, version {abi}")
