"""A profiler's processes, started before this one imports torch: they all load at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.child.preload import Preload
from kopt.actors.evidence.capabilities import load_capabilities
from kopt.actors.evidence.ncu import NcuRun, means_of, ncu_environment
from kopt.actors.supervisor.scratch import ScratchRoot
from kopt.actors.supervisor.zygote import Zygote
from kopt.actors.supervisor.zygote_start import start_zygote
from kopt.evidence import EvidenceLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """What a `DeviceProfiler` that is not lasting would start; whoever has it closes it."""

    zygote: Zygote
    ncu: NcuRun | None
    """A run of ncu that waits for candidates."""
    _scratch: ScratchRoot

    def close(self) -> None:
        """End it all, whoever has taken it over; closing again does nothing."""
        if self.ncu is not None:
            self.ncu.close()
        self._scratch.close()
        self.zygote.close()


def start_early(
    cache_dir: Path, *, device: Literal["auto", "cpu", "cuda"], level: EvidenceLevel | None
) -> Early | None:
    """Start what takes long to load.

    Args:
        cache_dir: kopt's cache on this node.
        device: that was asked for; `auto` is a GPU where the driver has one.
        level: that will be asked for at once; None begins no run of ncu.

    Returns:
        None where the device asked for is not here, which others have to say.
    """
    facts = None if device == "cpu" else gpu_of_node()
    if facts is None and device == "cuda":
        return None
    arch = "" if facts is None else facts.arch
    preload = Preload(arch=arch, uses_device=facts is not None)
    zygote = start_zygote(preload, cache_dir=cache_dir)
    scratch = ScratchRoot()
    ncu = None
    if facts is not None and level is not None:
        ncu = _begun(scratch.new(), cache_dir=cache_dir, arch=arch, level=level)
    return Early(zygote=zygote, ncu=ncu, _scratch=scratch)


def _begun(folder: Path, *, cache_dir: Path, arch: str, level: EvidenceLevel) -> NcuRun | None:
    """A run of ncu, begun where this machine was looked at before."""
    has = load_capabilities(cache_dir, device="cuda")
    means = None if has is None else means_of(has, level=level)
    if means is None:
        return None
    run = NcuRun(means, folder=folder, arch=arch)
    num_threads = len(os.sched_getaffinity(0))
    run.begin(ncu_environment(folder, num_threads=num_threads, cache_dir=cache_dir))
    return run
