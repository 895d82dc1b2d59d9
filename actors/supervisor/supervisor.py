"""The supervisor: one device, its sessions, and the verdict on each candidate.

Whatever a candidate does ends in a verdict. The default is fail: `Correct` is made in one place,
after every check passed.
"""

from __future__ import annotations

import os
import random
import time
from collections import OrderedDict
from pathlib import Path

import torch

from kopt.actors.child.sandbox.privileges import conceal
from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.gates import correctness_gate
from kopt.actors.supervisor.loading import Loaded, load_candidate, static_gate
from kopt.actors.supervisor.race import performance_gate
from kopt.actors.supervisor.session import Session, open_session
from kopt.actors.supervisor.settings import Bench, memory_limit
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.actors.supervisor.zygote import Zygote
from kopt.actors.verify.compare import worst
from kopt.candidate import Candidate
from kopt.errors import ProblemError
from kopt.evaluation import Check, Evaluation
from kopt.identity import derived_seed
from kopt.ports import Target
from kopt.problem import Problem
from kopt.verdict import Correct, Crashed, Verdict

MAX_SESSIONS = 2
"""Problems kept ready: the one at work, and the one it alternates with."""


class Supervisor:
    """Judges candidates on one device."""

    def __init__(
        self,
        config: EvaluateConfig,
        *,
        device: DeviceName,
        cache_dir: Path,
        target: Target | None = None,
    ) -> None:
        """Start the zygote.

        Args:
            config: how candidates are judged; its secret must be set.
            device: kind of device.
            cache_dir: kopt's cache.
            target: what the device is; None asks it.

        Raises:
            ConfigError: the device is not here.
        """
        if config.secret is None:
            raise ValueError("a supervisor needs a secret")
        conceal()
        self.target = target or describe(device)
        num_threads = len(os.sched_getaffinity(0))
        torch.set_num_threads(num_threads)  # of comparisons; Ray gives its actors one
        self._bench = Bench(
            zygote=Zygote(
                child_environment(
                    scratch=Path("/tmp"), num_threads=num_threads, cache_dir=cache_dir
                ),
                # Loading the compiler asks for CUDA devices, after which no child could use them.
                compiles=device == "cpu" and (config.compile or config.max_autotune),
            ),
            device=device,
            config=config,
            cache_dir=cache_dir,
            num_threads=num_threads,
            memory_bytes=memory_limit(config, device=device),
        )
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._generation = self._bench.zygote.generation

    def evaluate(
        self, problem: Problem, candidate: Candidate, *, build_dir: Path | None = None
    ) -> Evaluation:
        """Verify and time one candidate.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        trail = Trail()
        clock = _Laps()
        loaded: Loaded | None = None
        session: Session | None = None
        sandbox = "none"
        verdict: Verdict
        try:
            with trail.gate("static"):
                static_gate(candidate, languages=self.target.languages, trail=trail)
            session = self._session(problem)
            trail.checks += session.checks
            clock.lap("prepared")
            with trail.gate("correctness"):
                loaded = load_candidate(
                    self._bench, session, candidate, build_dir=build_dir, trail=trail
                )
                sandbox = loaded.child.sandbox
                clock.lap("forked")
                firsts_us = correctness_gate(self._bench, session, loaded, trail=trail)
            clock.lap("verified")
            seed = derived_seed(self._bench.config.secret, candidate.candidate_id, "order")
            timing = performance_gate(
                self._bench,
                session,
                loaded,
                firsts_us=firsts_us,
                trail=trail,
                rng=random.Random(seed),
            )
            verdict = Correct(timing=timing, error=worst(trail.errors))
        except Judged as judged:
            verdict = judged.verdict
        except ProblemError:
            self._forget(problem)  # its reference may be dead; the next candidate gets another
            if loaded is None or not self._was_restarted():
                raise
            # The reference ended because the candidate killed what forked them both.
            verdict = Crashed(stage="timing", log="the candidate's and the reference's parent died")
            trail.checks.append(Check(name="timed", passed=False, detail=verdict.reason))
        finally:
            if loaded is not None:
                loaded.child.end()
            clock.lap(
                "timed" if any(gate.name == "performance" for gate in trail.gates) else "ended"
            )
        baseline_checks = session.baselines.checks if session is not None else []
        return Evaluation(
            verdict=verdict,
            problem=problem.problem_id,
            candidate=candidate.candidate_id,
            language=candidate.language,
            ladder=self._bench.config.ladder,
            device=self.target.label,
            track=self._bench.config.track,
            sandbox=sandbox,
            gates=tuple(trail.gates),
            checks=(*trail.checks, *baseline_checks),
            degenerate=session.degenerate if session is not None else bool(problem.degenerate),
            timeline_s=clock.laps,
        )

    def close(self) -> None:
        """End every child and the zygote."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        self._bench.zygote.close()

    def _was_restarted(self) -> bool:
        """Whether the zygote died, and every session's children with it, since last asked."""
        self._bench.zygote.ensure()
        before, self._generation = self._generation, self._bench.zygote.generation
        return before != self._generation

    def _forget(self, problem: Problem) -> None:
        session = self._sessions.pop(problem.problem_id, None)
        if session is not None:
            session.close()

    def _session(self, problem: Problem) -> Session:
        if self._was_restarted():
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()
        known = self._sessions.pop(problem.problem_id, None)
        if known is None:
            while len(self._sessions) >= MAX_SESSIONS:
                _, oldest = self._sessions.popitem(last=False)
                oldest.close()
            known = open_session(self._bench, problem)
        self._sessions[problem.problem_id] = known
        return known


class _Laps:
    """Seconds between one stage's end and the next's."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last_s = time.monotonic()

    def lap(self, name: str) -> None:
        now_s = time.monotonic()
        self.laps[name] = now_s - self._last_s
        self._last_s = now_s
