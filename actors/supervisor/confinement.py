"""What a child may have: which folders, how much memory and time, by its role."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kopt.actors.cache.kinds import KINDS
from kopt.actors.child.sandbox.confine import Confinement
from kopt.actors.child.sandbox.limits import MAX_CPU_S_PER_CORE


def confinement_of(
    scratch: Path,
    *,
    settings: Mapping[str, Any],
    cache_dir: Path,
    memory_bytes: int,
    build_dir: Path | None,
    keeps_builds: bool,
    is_ahead: bool = False,
) -> Confinement:
    """Return what a child may have.

    Args:
        scratch: its scratch folder, new and empty.
        settings: what it is told: its device and its number of threads.
        cache_dir: kopt's cache; a candidate sees no other's builds in it, nor the reference's
            compiled kernels, nor any verdict, baseline or output of a reference.
        memory_bytes: host memory it may map.
        build_dir: the candidate's folder of builds; None for the reference.
        keeps_builds: what it adds to that folder stays.
        is_ahead: for a candidate that is not known yet: all folders of builds look empty, and what
            is put there goes with the child.
    """
    builds, compiled = cache_dir / "build", cache_dir / "inductor"
    own = builds if is_ahead else compiled if build_dir is None else build_dir
    own.mkdir(parents=True, exist_ok=True)
    folder = str(own.resolve())
    is_candidate = is_ahead or build_dir is not None
    is_kept = keeps_builds or not is_candidate
    return Confinement(
        scratch=str(scratch),
        writable=(folder,) if is_kept else (),
        discarded=() if is_kept or is_ahead else (folder,),
        emptied=(folder,) if is_ahead else (),
        hidden=(
            str(builds.resolve()),
            str(compiled.resolve()),
            *(str((cache_dir / kind).resolve()) for kind in KINDS if kind != "build"),
        ),
        memory_bytes=memory_bytes,
        by_data=settings["device"] == "cuda" or keeps_builds,
        cpu_s=None if not is_candidate else MAX_CPU_S_PER_CORE * int(settings["num_threads"]),
    )
