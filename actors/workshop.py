"""What the build lane works with: a node's cache of builds, and children that compile into it.

A candidate's builds are in a folder of its own that no other candidate sees, and that nobody but a
child with that candidate writes. It is named by all that the build depends on, and is reused by
whoever needs the same. Extensions of torch are built through light headers where they can be; what
a failed build says is what torch's own build says.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from pathlib import Path

from kopt.actors.build.cache import LEAST_FREE_BYTES, BuildCache, Entry
from kopt.actors.build.compilers import build_key
from kopt.actors.build.failures import is_lasting, read_failure, write_failure
from kopt.actors.build.gpu_facts import GpuFacts, gpu_of_node
from kopt.actors.build.toolchain import provide_toolchain
from kopt.actors.build.triton_order import order_to_compile, triton_build_key
from kopt.actors.builder import BuildResult, nothing_to_build
from kopt.actors.config import EvaluateConfig
from kopt.actors.cutlass.gate import cutlass_refusal
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.load_failure import load_verdict
from kopt.actors.supervisor.settings import Bench, open_bench
from kopt.candidate import Candidate
from kopt.problem import Problem
from kopt.static_check import static_check
from kopt.verdict import CompileFailed, TimedOut, Verdict

_LOG = logging.getLogger(__name__)
KERNELS_AT_ONCE = 4
"""Of a Triton candidate, compiled side by side: more wait for Python's lock."""
_EXTENSIONS = "cpp_extension"
"""Named by sources that build extensions of torch, which the light toolchain is for."""


class Workshop:
    """Builds candidates, as many at a time as threads ask; several workshops share a cache."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: DeviceName,
        cache_dir: str,
        *,
        gpu: GpuFacts | None = None,
    ) -> None:
        """Begin to load what builds for a GPU need; no device is ever touched.

        Args:
            config: for deadlines and limits.
            device: that the candidates are for.
            cache_dir: kopt's cache on this node.
            gpu: that Triton candidates are compiled for; None for what this node has or names.
        """
        self._gpu = gpu or (gpu_of_node() if device == "cuda" else None)
        self._config = config
        cache = Path(cache_dir)
        self._cache_dir = cache
        self._cache = BuildCache(cache / "build")
        self._has_toolchain = False
        self._elsewhere: list[Path] = []
        self._memory_as = device
        self._opening = threading.Lock()
        self._benches: dict[str, Bench] = {}
        """By the architecture that children compile for; empty where they need no compiler."""
        if device == "cuda":  # loading takes as long as the first builds
            self._opened()
        if self._gpu is not None:
            self._opened(self._gpu.arch)

    def build(self, problem: Problem, candidate: Candidate) -> BuildResult:
        """Compile what the candidate's import compiles.

        Raises:
            WorkerLost: the zygote is gone.
        """
        if candidate.language == "triton" and self._gpu is None:
            return nothing_to_build(candidate, cache_dir=self._cache_dir)
        if not static_check(candidate.source, language=candidate.language).passed:
            # The supervisor says why; code that fails gate 1 is not run, here neither.
            return BuildResult()
        refusal = cutlass_refusal(candidate.source, cache_dir=self._cache_dir)
        if refusal is not None:
            return BuildResult(verdict=CompileFailed(stage="build", log=refusal))
        if _EXTENSIONS in candidate.source and not self._has_toolchain:
            provide_toolchain(self._cache_dir)
            self._has_toolchain = True
        try:
            return self._build_in_cache(problem, candidate)
        except OSError as error:
            _LOG.warning("built without the cache of builds, which cannot be used: %s", error)
            return self._build_elsewhere(problem, candidate)

    def close(self) -> None:
        """End the zygotes, if any was started."""
        for bench in self._benches.values():
            bench.zygote.close()
        for folder in self._elsewhere:
            shutil.rmtree(folder, ignore_errors=True)

    def _build_in_cache(self, problem: Problem, candidate: Candidate) -> BuildResult:
        """Build it, or find it built.

        Raises:
            OSError: the cache's disk is full, or is not ours to write.
        """
        key = self._key(problem, candidate)
        with self._cache.entry(key) as entry:
            if entry.is_whole:
                return _as_built_before(entry.folder)
            built = self._make(problem, candidate, entry.folder)
            if built.verdict is None:
                self._cache.keep(entry)
            else:
                self._keep_failure(entry, built, built.verdict)
            return built

    def _keep_failure(self, entry: Entry, built: BuildResult, verdict: Verdict) -> None:
        """Remember what a compiler refuses; what may be the host's doing is tried anew.

        Raises:
            OSError: the cache's disk is full, which may be why it failed.
        """
        _refuse_if_full(entry)
        if isinstance(verdict, CompileFailed) and is_lasting(verdict.log):
            try:
                write_failure(entry.folder, log=verdict.log, sandbox=built.sandbox)
                self._cache.keep(entry)
            except OSError as error:
                _LOG.info("a build that failed is not remembered: %s", error)
            else:
                return
        self._cache.drop(entry)

    def _build_elsewhere(self, problem: Problem, candidate: Candidate) -> BuildResult:
        folder = Path(tempfile.mkdtemp(prefix="kopt-build-"))
        folder.chmod(0o755)
        self._elsewhere.append(folder)
        return self._make(problem, candidate, folder)

    def _key(self, problem: Problem, candidate: Candidate) -> str:
        if candidate.language == "triton" and self._gpu is not None:
            mode = self._config.module_mode
            return triton_build_key(problem=problem, candidate=candidate, gpu=self._gpu, mode=mode)
        return build_key(candidate.source, language=candidate.language)

    def _make(self, problem: Problem, candidate: Candidate, folder: Path) -> BuildResult:
        if candidate.language == "triton" and self._gpu is not None:
            return self._compile_ahead(problem, candidate, folder, gpu=self._gpu)
        return self._compile(problem, candidate, folder)

    def _compile_ahead(
        self, problem: Problem, candidate: Candidate, folder: Path, *, gpu: GpuFacts
    ) -> BuildResult:
        """Fill a folder with what a Triton candidate compiles; whatever happens is no verdict.

        A child that ends early leaves whole files only: Triton renames them into its cache.
        """
        order = order_to_compile(
            problem=problem,
            candidate=candidate,
            gpu=gpu,
            mode=self._config.module_mode,
            num_workers=min(KERNELS_AT_ONCE, self._opened(gpu.arch).num_threads),
        )
        child, sandbox = None, "none"
        try:
            child = self._opened(gpu.arch).child(problem, build_dir=folder, keeps_builds=True)
            sandbox = child.sandbox
            child.ask("import", timeout_s=self._config.timeouts.build_s, source=order, name="ahead")
        except ChildFailed as failure:
            _LOG.info("kernels are left to the device lane: %s", failure)
        finally:
            if child is not None:
                child.end()
        return BuildResult(sandbox=sandbox, build_dir=str(folder))

    def _opened(self, arch: str = "") -> Bench:
        """The zygote whose children import candidates, or run them on stand-ins of a GPU.

        Fake tensors need much of torch's compiler; builds of extensions do not wait for it.
        """
        with self._opening:
            if arch not in self._benches:
                self._benches[arch] = open_bench(
                    self._config,
                    device="cpu",
                    cache_dir=self._cache_dir,
                    memory_as=self._memory_as,
                    compiles=bool(arch),
                    arch=arch,
                )
            return self._benches[arch]

    def _compile(self, problem: Problem, candidate: Candidate, folder: Path) -> BuildResult:
        """Import the candidate in a child that keeps what it builds in an empty folder."""
        limit_s = self._config.timeouts.build_s
        child, sandbox = None, "none"
        try:
            child = self._opened().child(problem, build_dir=folder, keeps_builds=True)
            sandbox = child.sandbox
            child.ask("import", timeout_s=limit_s, source=candidate.source, name="candidate")
        except ChildFailed as failure:
            if failure.how == "timed_out":
                late = TimedOut(stage="build", limit_s=failure.limit_s)
                return BuildResult(verdict=late, sandbox=sandbox)
            verdict = load_verdict(failure)
            if isinstance(verdict, CompileFailed):
                verdict = CompileFailed(stage="build", log=verdict.log)
            return BuildResult(verdict=verdict, sandbox=sandbox)
        finally:
            if child is not None:
                child.end()
        return BuildResult(sandbox=sandbox, build_dir=str(folder))


def _as_built_before(folder: Path) -> BuildResult:
    failed = read_failure(folder)
    if failed is None:
        return BuildResult(build_dir=str(folder), cached=True)
    log, sandbox = failed
    return BuildResult(verdict=CompileFailed(stage="build", log=log), sandbox=sandbox, cached=True)


def _refuse_if_full(entry: Entry) -> None:
    """Let no candidate be judged by a disk that was full.

    Raises:
        OSError: it is.
    """
    free_bytes = shutil.disk_usage(entry.folder.parent).free
    if free_bytes < LEAST_FREE_BYTES:
        raise OSError(f"{free_bytes >> 20} MiB are free")
