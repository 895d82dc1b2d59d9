"""The supervisor: one device, its sessions, and the verdict on each candidate.

Several candidates may be judged at a time, each on a thread of its own; whose turn it is on the
device, turns.py says. A candidate whose try was disturbed by the others is judged again, alone, so
that a verdict never depends on who else was there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import torch

from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.child.sandbox.privileges import conceal
from kopt.actors.child.tensor_spec import Place
from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName, describe
from kopt.actors.supervisor.child import Child
from kopt.actors.supervisor.company import Company
from kopt.actors.supervisor.endings import Endings
from kopt.actors.supervisor.exchange import is_short_in
from kopt.actors.supervisor.exchange_probe import usable_place
from kopt.actors.supervisor.judging import Disturbed, Try
from kopt.actors.supervisor.laps import Laps
from kopt.actors.supervisor.loading import static_gate
from kopt.actors.supervisor.provenance import unrecorded
from kopt.actors.supervisor.session import Session, open_session
from kopt.actors.supervisor.sessions import Sessions
from kopt.actors.supervisor.settings import open_bench
from kopt.actors.supervisor.supply import Supply
from kopt.actors.supervisor.surveying import survey_of
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.actors.supervisor.turns import Turns
from kopt.actors.supervisor.warm import WarmChildren
from kopt.candidate import Candidate
from kopt.errors import ConfigError, ProblemError
from kopt.evaluation import Check, Evaluation
from kopt.foreign_language import with_foreign
from kopt.ports import Target
from kopt.problem import Problem
from kopt.survey import Survey
from kopt.verdict import CompileFailed, Crashed, Verdict, last_line

_LOG = logging.getLogger(__name__)
_NO_ROOM = re.compile(
    r"out of memory|OutOfMemory|MemoryError|can't allocate memory|fit into memory", re.I
)
"""What a candidate says, or is said of a problem, that found no memory: others may have it."""
_IMPORTED_LATE = "torch.fx.experimental.symbolic_shapes"
"""By torch, the first time it checks an argument of some functions that inputs are drawn with; with
sympy it takes two seconds, which would be the first problem's."""


class Supervisor:
    """Judges candidates on one device."""

    def __init__(
        self,
        config: EvaluateConfig,
        *,
        device: DeviceName,
        cache_dir: Path,
        target: Target | None = None,
        supply: Supply | None = None,
    ) -> None:
        """Start the zygote.

        Args:
            config: how candidates are judged; its secret must be set.
            device: kind of device.
            cache_dir: kopt's cache.
            target: what the device is; None asks it.
            supply: what is kept ready; None: two sessions and no child.

        Raises:
            ConfigError: the device is not here.
        """
        if config.secret is None:
            raise ValueError("a supervisor needs a secret")
        conceal()
        self._supply = supply or Supply()
        self._bench = open_bench(
            config,
            device=device,
            cache_dir=cache_dir,
            compiles=config.compile or config.max_autotune,
            arch=_arch(device),
        )
        try:  # while the zygote loads
            self.target = with_foreign(target or describe(device), config.languages)
            import_module(_IMPORTED_LATE)
        except ConfigError:
            self._bench.zygote.close()
            raise
        self._bench = replace(self._bench, device_name=self.target.name)
        torch.set_num_threads(self._bench.num_threads)  # of comparisons; Ray gives its actors one
        place = usable_place(device, open_child=self._bench.child_ahead)
        self._bench = replace(self._bench, exchange=place)
        if self._supply.warm_children:
            warm = WarmChildren(
                self._bench.child_ahead,
                size=self._supply.warm_children,
                zygote=self._bench.zygote,
                builds=cache_dir / "build",
                turns=self._bench.turns,
            )
            self._bench = replace(self._bench, warm=warm)
        self._endings = Endings(self._bench.turns, in_flight=self._supply.in_flight)
        self._sessions = Sessions(
            partial(open_session, self._bench),
            keep=self._supply.sessions,
            beside=self._endings.begin_shared,
            is_short=partial(is_short_in, place),
        )
        self._admission = Turns()
        self._company = Company()

    def evaluate(
        self, problem: Problem, candidate: Candidate, *, build_dir: Path | None = None
    ) -> Evaluation:
        """Verify and time one candidate; several threads may call this.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        laps = Laps()
        evaluation = self._evaluated(problem, candidate, build_dir, laps=laps)
        laps.lap("ended")
        return replace(evaluation, timeline_s=dict(laps.laps))

    def _evaluated(
        self, problem: Problem, candidate: Candidate, build_dir: Path | None, *, laps: Laps
    ) -> Evaluation:
        try:
            with self._admission.shared():
                laps.lap("prepared")
                return self._judge(problem, candidate, build_dir, laps=laps, is_alone=False)
        except Disturbed:
            laps.void("disturbed")
        _LOG.info("%s is judged again, alone", candidate.candidate_id[:12])
        with self._admission.exclusive():
            laps.lap("disturbed")
            self._sessions.close_idle()
            return self._judge(problem, candidate, build_dir, laps=laps, is_alone=True)

    def take_up(self, problem: Problem) -> None:
        """Make a problem ready for its candidates, but for what is measured: nothing is timed.

        On a GPU it goes on compiling, and is stopped while something is timed; there a problem for
        which another one's session had to go is not taken up, since that one may be waited for.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        is_gpu = self._bench.device == "cuda"
        if is_gpu and not self._sessions.has_room:
            return
        with self._session(problem) as session:
            if not is_gpu:
                with session.at_baselines:
                    session.baselines.compiled()

    def survey(self, problem: Problem) -> Survey:
        """Say what a problem is in numbers; its baselines are measured if they were not yet.

        Raises:
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        with self._company.joined(is_alone=False) as had_company:
            try:
                with self._admission.shared():
                    return self._surveyed(problem)
            except ProblemError as error:
                if not had_company() or not _NO_ROOM.search(error.why):
                    raise
        with self._admission.exclusive():  # others may have held the memory that it took
            self._sessions.forget(problem)
            self._sessions.close_idle()
            return self._surveyed(problem)

    @property
    def exchange(self) -> Place:
        """Where inputs and outputs lie that are exchanged with children."""
        return self._bench.exchange

    def busy_s(self) -> float:
        """Return the seconds so far for which something had a turn on the device."""
        return self._bench.turns.busy_s()

    def settle(self) -> None:
        """Wait for what goes on beside evaluations: children that end, or are forked ahead."""
        self._endings.settle()
        if self._bench.warm is not None:
            self._bench.warm.settle()

    def close(self) -> None:
        """End every child and the zygote."""
        self._endings.close()
        if self._bench.warm is not None:
            self._bench.warm.close()
        self._sessions.close_idle()
        self._bench.zygote.close()

    def _judge(
        self,
        problem: Problem,
        candidate: Candidate,
        build_dir: Path | None,
        *,
        laps: Laps,
        is_alone: bool,
    ) -> Evaluation:
        """Make one try.

        Raises:
            ProblemError, WorkerLost: as `evaluate`.
            Disturbed: others may be to blame for the outcome; never where it is alone.
        """
        trail = Trail()
        try:
            with trail.gate("static"):
                static_gate(candidate, languages=self.target.languages, trail=trail)
        except Judged as judged:
            laps.lap("ended")
            return self._evaluation(judged.verdict, problem, candidate, trail=trail, laps=laps)
        with self._company.joined(is_alone=is_alone) as had_company:
            generation = self._generation()
            attempt: Try | None = None
            try:
                with self._sessions.use(problem, generation=generation) as session:
                    if session.baselines.is_stale:  # else nobody waits for one who compiles
                        with session.at_baselines, self._bench.alone():
                            session.baselines.renew()
                    trail.checks += session.checks
                    laps.lap("prepared")
                    attempt = Try(
                        bench=self._bench,
                        session=session,
                        candidate=candidate,
                        build_dir=build_dir,
                        trail=trail,
                        laps=laps,
                    )
                    verdict = attempt.judge(self._end)
                    if had_company() and self._may_be_others(verdict, attempt, generation):
                        raise Disturbed
                    return self._evaluation(
                        verdict,
                        problem,
                        candidate,
                        trail=trail,
                        laps=laps,
                        session=session,
                        sandbox=attempt.sandbox,
                    )
            except (MemoryError, torch.OutOfMemoryError, ProblemError) as error:
                fault = _as_fault(problem, error)
                self._sessions.forget(problem)  # its reference may be dead
                if had_company():
                    raise Disturbed from None
                if attempt is None or not attempt.is_loaded:
                    raise fault from None
                verdict = self._at_fault_itself(fault, generation, trail=trail)
                return self._evaluation(
                    verdict, problem, candidate, trail=trail, laps=laps, sandbox=attempt.sandbox
                )

    def _at_fault_itself(self, fault: ProblemError, generation: int, *, trail: Trail) -> Crashed:
        """Return the verdict on a candidate that, alone with its problem, made the problem fail.

        Raises:
            ProblemError: it did not.
        """
        if generation != self._generation():
            # The reference ended because the candidate killed what forked them both.
            name, why = "timed", "the candidate's and the reference's parent died"
            verdict = Crashed(stage="timing", log=why)
        elif _NO_ROOM.search(fault.why):  # there was some before the candidate came
            name, verdict = "room", Crashed(stage="memory", log=f"beside it, {fault.why}")
        else:
            raise fault from None
        trail.checks.append(Check(name=name, passed=False, detail=verdict.reason))
        return verdict

    def _may_be_others(self, verdict: Verdict, attempt: Try, generation: int) -> bool:
        if attempt.is_evicted or generation != self._generation():
            return True
        return isinstance(verdict, Crashed | CompileFailed) and bool(_NO_ROOM.search(verdict.log))

    def _surveyed(self, problem: Problem) -> Survey:
        with self._session(problem) as session:
            return survey_of(self._bench, session)

    @contextmanager
    def _session(self, problem: Problem) -> Iterator[Session]:
        """Give a problem's session, no candidate beside it.

        Raises:
            ProblemError: the reference breaks its contract, cannot run here, or what it takes does
                not fit into memory.
            WorkerLost: the zygote is gone.
        """
        with self._sessions.use(problem, generation=self._generation()) as session:
            try:
                yield session
            except (MemoryError, torch.OutOfMemoryError) as error:
                raise _as_fault(problem, error) from None

    def _evaluation(
        self,
        verdict: Verdict,
        problem: Problem,
        candidate: Candidate,
        *,
        trail: Trail,
        laps: Laps,
        session: Session | None = None,
        sandbox: str = "none",
    ) -> Evaluation:
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
            checks=(*trail.checks, *unrecorded(trail), *baseline_checks),
            library_share=trail.library_share,
            degenerate=session.degenerate if session is not None else bool(problem.degenerate),
            timeline_s=laps.laps,
        )

    def _generation(self) -> int:
        """Of the zygote, started again if it died, and every session's children with it."""
        self._bench.zygote.ensure()
        return self._bench.zygote.generation

    def _end(self, child: Child, then: Callable[[], None]) -> None:
        """End a candidate's child, beside others that are judged meanwhile."""

        def end() -> None:
            try:
                child.end()
            finally:
                then()

        self._endings.begin(end)


def _as_fault(problem: Problem, error: Exception) -> ProblemError:
    """Return what ended a try as the problem's fault, which memory that is missing is at first."""
    if isinstance(error, ProblemError):
        return error
    return ProblemError(problem.name, f"it does not fit into memory: {last_line(str(error))}")


def _arch(device: DeviceName) -> str:
    """Return the architecture of the GPU that children will use; empty where it is not known."""
    facts = gpu_of_node() if device == "cuda" else None
    return "" if facts is None else facts.arch
