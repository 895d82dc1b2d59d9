"""One candidate raced again and again in one session: how often a race errs can be counted.

For studies of the race itself. A candidate of a search is raced once, by `Supervisor.evaluate`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kopt.actors.supervisor.activity import NoRecord, reference_activity
from kopt.actors.supervisor.baselines import Baselines
from kopt.actors.supervisor.duel import Duel
from kopt.actors.supervisor.gates import correctness_gate
from kopt.actors.supervisor.loading import load_candidate
from kopt.actors.supervisor.session import Session, begin_baselines
from kopt.actors.supervisor.supervisor import Supervisor
from kopt.actors.supervisor.trail import Trail
from kopt.candidate import Candidate
from kopt.identity import derived_seed
from kopt.launch_noise import widened
from kopt.problem import Problem
from kopt.timing import Timing


class Rematch:
    """A candidate that was judged correct, and its problem's best baseline, both warm."""

    def __init__(self, duel: Duel, *, baselines: Baselines, launches: int | None) -> None:
        """Take both; `RaceStudy.rematch` makes one.

        Args:
            duel: of the two.
            baselines: of the problem.
            launches: of the reference's call on a GPU, about which a candidate's are as many.
        """
        self._duel, self._launches = duel, launches
        self._baselines = baselines
        self.baseline_us = baselines.times_us[baselines.best()]
        """What the best baseline took before the first race."""

    def race(self) -> Timing:
        """Return what one race finds, as an evaluation would report it.

        Raises:
            Judged: our clock does not support the candidate's times.
            ChildFailed: its child fails.
            ProblemError: the reference fails.
        """
        timing = self._duel.believable(trail=Trail())
        if self._launches is None:
            return timing
        return widened(timing, mine=self._launches, theirs=self._launches)

    def depths(self) -> tuple[int, int]:
        """Return how many calls a block has at most on a GPU: the candidate's, the baseline's."""
        theirs = self._baselines.watch(self._baselines.best())
        return self._duel.watch.depth.calls, theirs.depth.calls


class RaceStudy(Supervisor):
    """A supervisor whose candidates may be raced more than once, one at a time."""

    @contextmanager
    def rematch(
        self, problem: Problem, candidate: Candidate, *, build_dir: Path
    ) -> Iterator[Rematch]:
        """Load and verify a candidate; it can be raced as long as the context is open.

        Both processes are new ones: two of the same code may differ for good, so that races of one
        pair of them say nothing of another's. What the problem's session has drawn is kept.

        Args:
            problem: whose session is kept for the next candidate.
            candidate: in a language that is not built beforehand.
            build_dir: an empty folder, the candidate's own.

        Raises:
            Judged: it is not correct.
            ChildFailed: it fails while it is warmed up.
            ProblemError: the reference breaks its contract or cannot run here.
            WorkerLost: the zygote is gone.
        """
        trail = Trail()
        with self._sessions.use(problem, generation=self._generation()) as session:
            if session.baselines.times_us:  # of an earlier rematch
                self._begin_again(session)
            loaded = load_candidate(
                self._bench,
                session,
                candidate,
                build_dir=build_dir,
                trail=trail,
                on_child=lambda child: None,
            )
            try:
                correctness_gate(self._bench, session, loaded, trail=trail)
                session.baselines.compiled()
                launches = None
                if self._bench.device == "cuda":
                    with suppress(NoRecord):
                        launches = reference_activity(self._bench, session).launches
                with self._bench.alone():
                    seed = derived_seed(self._bench.config.secret, candidate.candidate_id)
                    rng = random.Random(seed)
                    duel = Duel(self._bench, session, loaded, trail=trail, rng=rng)
                    duel.watch.warm_up()
                    yield Rematch(duel, baselines=session.baselines, launches=launches)
            finally:
                loaded.child.end()

    def _begin_again(self, session: Session) -> None:
        session.baselines.close()
        session.reference.restart(session.states[-1], session.sets)
        session.baselines = Baselines(self._bench, session.problem)
        begin_baselines(self._bench, session)
