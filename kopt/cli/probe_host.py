"""Probes of the machine: cores, memory, room on disks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kopt.cli.probe import Probe, gib
from kopt.data.manifest import cpu_model

MIN_CORES = 2
MIN_MEMORY_BYTES = 4 * 2**30
MIN_SHM_BYTES = 512 * 2**20
"""Ray's object store of a local cluster (200 MB) beside the tensors of one problem."""
MIN_DISK_BYTES = 2 * 2**30


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
