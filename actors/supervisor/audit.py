"""Audits: outputs of timed calls, asked for at moments and of calls that nobody can foresee.

A candidate shares its process with the loop that times it, and may replace that loop: run only some
of the calls, run them later, all at once, or elsewhere. Why that does not pay:

* What a call is given depends on the digest of the output before it (chain.py): calls cannot be
  made ahead, together, or out of order, and none can be left out without making its output up.
* The hash that comes with a block's time binds the child to the digests of all its outputs. An
  output handed over later must have its digest, so that work put off shows as a mismatch. On a
  GPU the last digest comes from the device with the end of the block.
* Which block is asked about, and which of its calls, is drawn after the block was made; up to
  then every block is the same command. A made-up output is found wrong with the chance that its
  call is looked at, and a share p of made-up calls gains no more than p of the time. One that is
  what an earlier call gave is looked at three times in four.
* A clock that says less than passed is bounded by ours (kopt.hidden_time).
* Work remembered from one call to the next is bounded by calls on inputs never seen (unseen.py),
  some of whose outputs are asked for as well (unseen_probe.py).

Source: exploits 18-21, 27-30, 33, §E2; DESIGN §5.4.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from kopt.actors.child.chain import commitment
from kopt.actors.child.digest import digest
from kopt.actors.supervisor.child import ChildFailed
from kopt.actors.supervisor.gates import check_inputs
from kopt.actors.supervisor.inputs import JudgedSet, close_all, perturbed
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.made import GivenCall, Made
from kopt.actors.supervisor.outputs import (
    Taken,
    check_form,
    check_notes,
    compare,
    output_bytes,
    poisoned,
    take,
)
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Judged, Trail
from kopt.verdict import Cheated

FIRST_SHARE, LATER_SHARE, FIRST_BLOCKS = 0.25, 0.1, 8
"""Chance of a block to be audited, of the first few and of the rest: never 0, so that no block is
known to be left alone."""
MAX_OUTPUTS = 8
"""Outputs of one audit whose digests are checked."""
MAX_COMPARED, MAX_LARGE = 3, 2
"""Of those, how many are compared with the reference's: small ones, and large ones."""
CLOSING_FACTOR = 2
"""The audit after a race, which always comes, compares up to so many times as many small ones: of
races where every second call was made up, one in thirty passes six."""
MAX_BYTES, LARGE_BYTES = 64 << 20, 16 << 20
"""Of the outputs of one audit together, but one is always asked for; of outputs that are large."""


class Auditor:
    """Looks at the outputs of one candidate's timed calls."""

    def __init__(
        self,
        bench: Bench,
        session: Session,
        loaded: Loaded,
        watch: Stopwatch,
        *,
        trail: Trail,
        rng: random.Random,
    ) -> None:
        """Take what is timed; rng is secret."""
        self._bench, self._session, self._child = bench, session, loaded.child
        self._watch, self._trail, self._rng, self._blocks = watch, trail, rng, 0
        self.compared = 0
        """Outputs that were compared with the reference's."""
        self.digested = 0
        """Outputs whose digest was checked."""

    def maybe_audit(self) -> None:
        """Perhaps audit the last block.

        Raises:
            Judged: the candidate does not stand it.
            ProblemError: the reference fails on a timed input.
            ChildFailed: the candidate's child is gone.
        """
        self._blocks += 1
        if self._rng.random() < (FIRST_SHARE if self._blocks <= FIRST_BLOCKS else LATER_SHARE):
            self.audit()

    def audit(
        self,
        watch: Stopwatch | None = None,
        sets: Mapping[int, JudgedSet] | None = None,
        *,
        closes: bool = False,
    ) -> None:
        """Ask for the outputs of some calls of the last block, and judge them.

        Args:
            watch: that timed the block; None for the one that races.
            sets: that it timed, by their numbers; None for the session's.
            closes: whether no other audit of the race follows.

        Raises:
            Judged, ProblemError, ChildFailed: as `maybe_audit`.
        """
        watch = self._watch if watch is None else watch
        sets = dict(enumerate(self._session.sets)) if sets is None else sets
        made, form = watch.last, self._like.outputs
        told = self._child.ask("digests", timeout_s=self._limit_s)
        digests = self._committed(made, told.get("digests"))
        calls = self._chosen(digests, size=output_bytes(form))
        buffers = [poisoned(form) for _ in calls]
        numbers = self._child.share([each for group in buffers for each in group])
        rest = iter(numbers)
        into = [[next(rest) for _ in group] for group in buffers]
        answer = self._child.ask("hand_over", timeout_s=self._limit_s, calls=calls, into=into)
        taken = [take(each) for each in buffers]  # one look: a child may still write
        self._child.ask("unmap", timeout_s=self._limit_s, numbers=numbers)
        close_all(each for group in buffers for each in group)
        self._check_digests(answer, digests, calls=calls, taken=taken)
        for position in self._compared(calls, closes=closes):
            given = made.given(
                calls[position], sizes=watch.sizes, digests=digests, place=self._bench.exchange
            )
            self._check_values(sets[given.number], given, answer, position, taken[position])
        for number in made.numbers:
            check_inputs(
                self._child,
                sets[number],
                number=number,
                limit_s=self._limit_s,
                trail=self._trail,
            )

    @property
    def _like(self) -> JudgedSet:
        """A set of which all that are timed have the form."""
        return self._session.sets[self._session.timed()[0]]

    @property
    def _limit_s(self) -> float:
        return self._bench.config.timeouts.correctness_s

    def _committed(self, made: Made, told: object) -> list[int]:
        """Return the digests of a block as its child tells them.

        Raises:
            Judged: they are not what its time came with.
        """
        if (
            not isinstance(told, list)
            or len(told) != made.calls
            or not all(type(each) is int and -(1 << 63) <= each < 1 << 63 for each in told)
        ):
            raise self._cheated("a timed block has no digest for each of its calls")
        if commitment(told) != made.commitment or told[-1] != made.last:
            raise self._cheated("the digests of a timed block are not those it came with")
        return told

    def _chosen(self, digests: list[int], *, size: int) -> list[int]:
        """Calls to ask for, those to compare first.

        The first is the last one, with which the block was over. The next gave what an earlier one
        had given, where there is such a call: one that was left out does. Then any.
        """
        last = len(digests) - 1
        first = {digest: call for call, digest in reversed(list(enumerate(digests)))}
        again = [call for call, digest in enumerate(digests) if first[digest] < call]
        rest = self._rng.sample(range(last), last)
        some = [self._rng.choice(again)] if again and self._rng.getrandbits(2) else []
        count = max(1, min(MAX_OUTPUTS, MAX_BYTES // max(size, 1)))
        chosen = list(dict.fromkeys([last, *some, *rest]))
        return chosen[:count] if count > 1 else [self._rng.choice(chosen[:2])]

    def _compared(self, calls: list[int], *, closes: bool) -> range:
        """Positions of the outputs to compare with the reference's."""
        judged = self._like
        size = sum(each.spec.num_bytes for each in judged.tensors) + output_bytes(judged.outputs)
        most = MAX_COMPARED * CLOSING_FACTOR if closes else MAX_COMPARED
        return range(min(len(calls), MAX_LARGE if size > LARGE_BYTES else most))

    def _check_digests(
        self,
        answer: dict[str, Any],
        digests: list[int],
        *,
        calls: list[int],
        taken: list[list[Taken]],
    ) -> None:
        """Whether what was handed over is what the block's time came with.

        Raises:
            Judged: it is not.
        """
        for position, call in enumerate(calls):
            check_notes(answer, position, self._like, trail=self._trail)
            check_form(self._like.outputs, answer, position, taken[position], trail=self._trail)
            if _digest(answer, position, taken[position]) != digests[call]:
                raise self._cheated("the output of a timed call is not what it was when it ended")
            self.digested += 1

    def _check_values(
        self,
        drawn: JudgedSet,
        given: GivenCall,
        answer: dict[str, Any],
        position: int,
        taken: list[Taken],
    ) -> None:
        """Compare an output with what the reference gives on the same fresh input.

        Raises:
            Judged: it is wrong.
            ProblemError: the reference fails on it.
        """
        judged = perturbed(drawn, given.perturbation, seed=given.seed)
        self._session.run_reference(judged)
        compare(
            self._bench, judged, answer, position, taken, name="timed_output", trail=self._trail
        )
        judged.close()
        self.compared += 1

    def _cheated(self, detail: str) -> Judged:
        return self._trail.fail("deferred_work", Cheated(check="deferred_work", detail=detail))


def _digest(answer: dict[str, Any], position: int, taken: Sequence[Taken]) -> int:
    """Return the digest of outputs that were taken, read in the order that the child names.

    Raises:
        ChildFailed: it names no order of their dimensions.
    """
    try:
        orders = answer["orders"][position]
        ordered = [
            each.tensor.permute([int(dim) for dim in order])
            for each, order in zip(taken, orders, strict=True)
        ]
    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
        raise ChildFailed("died", "answer", f"spoke out of turn: {error}") from None
    return int(digest([each.contiguous() for each in ordered]))
