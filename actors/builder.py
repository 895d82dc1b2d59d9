"""The build lane: what a candidate's import compiles, compiled on CPUs ahead of its device.

A candidate's builds are in a folder of its own, named by its id, that no other candidate sees. The
folder is made elsewhere, marked when whole, and reused by whoever needs the same candidate.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.loading import load_verdict
from kopt.actors.supervisor.settings import Bench, memory_limit
from kopt.actors.supervisor.zygote import Zygote
from kopt.candidate import Candidate, Language
from kopt.evaluation import Check, Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.static_check import static_check
from kopt.verdict import CompileFailed, TimedOut, Verdict

BUILT_BY_IMPORT: frozenset[Language] = frozenset({"cpp", "cuda", "cute"})
"""Languages whose candidates compile while they are imported; others have nothing to build."""
_WHOLE = ".built"
"""Marks a folder whose build ended well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What came of building a candidate."""

    verdict: Verdict | None = None
    """What became of it, where it cannot be built."""
    sandbox: str = "none"
    """What confined the build; `none` where nothing was run."""
    build_dir: str | None = None
    """Its folder of builds; None where it has none."""
    build_s: float = 0.0
    cached: bool = False
    """It was built before; nothing was compiled."""


def build_folder(candidate: Candidate, *, cache_dir: Path) -> Path:
    """Return where a candidate's builds lie on each node: nobody else's, since its id names it."""
    name = candidate.candidate_id
    return cache_dir / "build" / name[:2] / name


def nothing_to_build(candidate: Candidate, *, cache_dir: Path) -> BuildResult:
    """Return the result for a language that is not built ahead: a folder for what it compiles."""
    folder = build_folder(candidate, cache_dir=cache_dir)
    return BuildResult(build_dir=str(folder))


def unbuilt(
    built: BuildResult,
    verdict: Verdict,
    problem: Problem,
    candidate: Candidate,
    *,
    config: EvaluateConfig,
    target: Target,
) -> Evaluation:
    """Return the evaluation of a candidate that was not built; no device has seen it."""
    return Evaluation(
        verdict=verdict,
        problem=problem.problem_id,
        candidate=candidate.candidate_id,
        language=candidate.language,
        ladder=config.ladder,
        device=target.label,
        track=config.track,
        sandbox=built.sandbox,
        gates=(
            Check(name="static", passed=True),
            Check(name="correctness", passed=False, detail=verdict.reason),
        ),
        checks=(Check(name="build", passed=False, detail=verdict.reason),),
        degenerate=bool(problem.degenerate),
        timeline_s={"built": built.build_s},
    )


class Builder:
    """Builds candidates, one at a time; several builders share a cache."""

    def __init__(self, config: EvaluateConfig, device: DeviceName, cache_dir: str) -> None:
        """Start the zygote whose children import candidates; no device is touched.

        Args:
            config: for deadlines and limits.
            device: that the candidates are for.
            cache_dir: kopt's cache on this node.
        """
        self._config = config
        self._cache = Path(cache_dir)
        num_threads = len(os.sched_getaffinity(0))
        self._bench = Bench(
            zygote=Zygote(
                child_environment(
                    scratch=Path("/tmp"), num_threads=num_threads, cache_dir=self._cache
                )
            ),
            device="cpu",
            config=config,
            cache_dir=self._cache,
            num_threads=num_threads,
            memory_bytes=memory_limit(config, device=device),
        )

    def build(self, problem: Problem, candidate: Candidate) -> BuildResult:
        """Compile what the candidate's import compiles.

        Raises:
            WorkerLost: the zygote is gone.
        """
        began_s = time.monotonic()
        if candidate.language not in BUILT_BY_IMPORT:
            return nothing_to_build(candidate, cache_dir=self._cache)
        folder = build_folder(candidate, cache_dir=self._cache)
        if not static_check(candidate.source, language=candidate.language).passed:
            # The supervisor says why; code that fails gate 1 is not run, here neither.
            return BuildResult()
        with _locked(folder):
            cached = (folder / _WHOLE).exists()
            verdict, sandbox = (
                (None, "none") if cached else self._compile(problem, candidate, folder)
            )
        return BuildResult(
            verdict=verdict,
            sandbox=sandbox,
            build_dir=str(folder),
            build_s=time.monotonic() - began_s,
            cached=cached,
        )

    def close(self) -> None:
        """End the zygote."""
        self._bench.zygote.close()

    def _compile(
        self, problem: Problem, candidate: Candidate, folder: Path
    ) -> tuple[Verdict | None, str]:
        """Return the verdict on what does not build, and the sandbox in force."""
        shutil.rmtree(folder, ignore_errors=True)  # what a killed builder left
        folder.mkdir(parents=True)
        limit_s = self._config.timeouts.build_s
        child, sandbox = None, "none"
        try:
            child = self._bench.child(problem, build_dir=folder)
            sandbox = child.sandbox
            child.ask("import", timeout_s=limit_s, source=candidate.source, name="candidate")
        except ChildFailed as failure:
            shutil.rmtree(folder, ignore_errors=True)
            if failure.how == "timed_out":
                return TimedOut(stage="build", limit_s=failure.limit_s), sandbox
            verdict = load_verdict(failure)
            if isinstance(verdict, CompileFailed):
                verdict = CompileFailed(stage="build", log=verdict.log)
            return verdict, sandbox
        finally:
            if child is not None:
                child.end()
        (folder / _WHOLE).touch()
        return None, sandbox


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: whoever wants the same candidate waits for the one who builds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
