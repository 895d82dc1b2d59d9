"""What the build lane left of a candidate, for whoever profiles it: or a folder to build in."""

from __future__ import annotations

import logging
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from kopt.actors.build.cache import BuildCache
from kopt.actors.build.compilers import build_key
from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.build.toolchain import provide_toolchain
from kopt.actors.build.triton_order import triton_build_key
from kopt.actors.builder import BUILT_AHEAD
from kopt.actors.evidence.subjects import Subject
from kopt.actors.evidence.workbench import Workbench

_LOG = logging.getLogger(__name__)
EXTENSIONS = "cpp_extension"
"""Named by sources that build extensions of torch as they are imported."""
KERNELS = "triton"
"""Folder of a build with Triton's kernels: its cache."""


class FoundBuild(NamedTuple):
    """A candidate's folder of builds."""

    folder: Path
    is_whole: bool
    """All of it is there: what a run adds is not kept."""
    builds: bool = False
    """A run may build extensions: the candidate's, which nobody built yet, or the reference's."""


class FoundBuilds:
    """The builds of one node, as a profiler sees them."""

    def __init__(self, bench: Workbench, *, cache_dir: Path) -> None:
        """Look below kopt's cache."""
        self._bench = bench
        self._cache_dir = cache_dir
        self._cache = BuildCache(cache_dir / "build")

    def of(self, subject: Subject, folders: ExitStack) -> FoundBuild:
        """Return what the candidate built, or a new folder that goes with the stack.

        Where a run will build extensions, the light toolchain is set up first, once for a node.
        """
        found = self._find(subject, folders)
        sources = [subject.problem.source, *([] if found.is_whole else [subject.candidate.source])]
        extends = any(EXTENSIONS in source for source in sources)
        if extends:
            provide_toolchain(self._cache_dir)
        compiles = subject.candidate.language in BUILT_AHEAD and not found.is_whole
        return found._replace(builds=extends or compiles)

    def _find(self, subject: Subject, folders: ExitStack) -> FoundBuild:
        candidate = subject.candidate
        if candidate.language == "triton":
            # Kernels that were compiled ahead need not be all that a call launches: a copy, in
            # which the rest is kept too.
            folder = folders.enter_context(self._bench.folder())
            self._copy_kernels(subject, folder)
            return FoundBuild(folder, is_whole=False)
        if candidate.language in BUILT_AHEAD:
            key = build_key(candidate.source, language=candidate.language)
            with self._cache.entry(key) as entry:
                if entry.is_whole:
                    return FoundBuild(entry.folder, is_whole=True)
                self._cache.drop(entry)  # the lane that builds makes its own
        return FoundBuild(folders.enter_context(self._bench.folder()), is_whole=False)

    def _copy_kernels(self, subject: Subject, folder: Path) -> None:
        gpu = gpu_of_node() if self._bench.device == "cuda" else None
        if gpu is None:
            return
        mode = self._bench.config.module_mode
        key = triton_build_key(
            problem=subject.problem, candidate=subject.candidate, gpu=gpu, mode=mode
        )
        try:
            with self._cache.entry(key) as entry:
                if entry.is_whole:
                    shutil.copytree(entry.folder / KERNELS, folder / KERNELS, symlinks=True)
                else:
                    self._cache.drop(entry)
        except (OSError, shutil.Error) as error:
            _LOG.info("kernels are compiled again: %s", error)
