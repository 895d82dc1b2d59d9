"""The build lane: what a candidate's import compiles, compiled on CPUs ahead of its device.

Light: a driver names the lane's worker and reads its answers, and loads no torch for it. What the
worker works with (workshop.py) is loaded where it builds.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.candidate import Candidate, Language
from kopt.evaluation import Check, Evaluation
from kopt.ports import Target
from kopt.problem import Problem
from kopt.verdict import Verdict

if TYPE_CHECKING:
    from kopt.actors.build.gpu_facts import GpuFacts
    from kopt.actors.workshop import Workshop

BUILT_AHEAD: frozenset[Language] = frozenset({"cpp", "cuda", "cute", "triton"})
"""Languages that the build lane is for; others have nothing to build. Triton's candidates compile
when they are called, which is done on stand-ins; the others compile while they are imported."""


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
    """Return where a candidate compiles that is not built ahead: its id names the folder."""
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
    """Builds candidates, as many at a time as threads ask; several builders share a cache."""

    def __init__(
        self,
        config: EvaluateConfig,
        device: DeviceName,
        cache_dir: str,
        *,
        gpu: GpuFacts | None = None,
    ) -> None:
        """Begin to load what builds for a GPU need, where any will be; no device is ever touched.

        Args:
            config: for deadlines and limits.
            device: that the candidates are for.
            cache_dir: kopt's cache on this node.
            gpu: that Triton candidates are compiled for; None for what this node has or names.
        """
        self._config = config
        self._device: DeviceName = device
        self._cache_dir = cache_dir
        self._gpu = gpu
        self._opening = threading.Lock()
        self._workshop: Workshop | None = None
        if device == "cuda" or gpu is not None:
            self._opened()

    def build(self, problem: Problem, candidate: Candidate) -> BuildResult:
        """Compile what the candidate's import compiles.

        Raises:
            WorkerLost: the zygote is gone.
        """
        if candidate.language not in BUILT_AHEAD:
            return nothing_to_build(candidate, cache_dir=Path(self._cache_dir))
        began_s = time.monotonic()
        built = self._opened().build(problem, candidate)
        return replace(built, build_s=time.monotonic() - began_s)

    def close(self) -> None:
        """End the zygotes, if any was started."""
        if self._workshop is not None:
            self._workshop.close()

    def _opened(self) -> Workshop:
        with self._opening:
            if self._workshop is None:
                from kopt.actors.workshop import Workshop

                self._workshop = Workshop(
                    self._config, self._device, self._cache_dir, gpu=self._gpu
                )
            return self._workshop
