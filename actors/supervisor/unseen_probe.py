"""Timed calls on inputs that nobody was given, each beside one on inputs that both sides know.

A probe draws a few inputs, has both children bind and read them, and times pairs of single calls of
each child: the same command, on a known input and on one of the new ones, each of which is used
once. A coin decides which of the two comes first, so that what a busy host adds has no side. Of the
candidate's calls on new inputs the output of one is asked for and compared: of which, it does not
know when it is called.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kopt.actors.supervisor.audit import Auditor
from kopt.actors.supervisor.fresh_inputs import draw_fresh
from kopt.actors.supervisor.gates import check_inputs
from kopt.actors.supervisor.held import held
from kopt.actors.supervisor.inputs import JudgedSet, sizes
from kopt.actors.supervisor.reference import bind
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.identity import derived_seed
from kopt.overhead import Block
from kopt.unseen_calls import Pair

MAX_SETS = 8
MAX_BYTES = 64 << 20
"""Of the inputs of one probe together; one is drawn at any size."""
WARM_CALLS = 4
"""Before the blocks of a child: threads are awake, and clocks up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """What one probe found, block by block."""

    mine: list[Pair]
    """The candidate's."""
    theirs: list[Pair]
    """The reference's."""


def probe(
    session: Session,
    mine: Stopwatch,
    theirs: Stopwatch,
    *,
    auditor: Auditor,
    secret: int,
    trail: Trail,
    rng: random.Random,
) -> Probed:
    """Time both children on inputs that are drawn for it and on those that they know.

    Args:
        session: of the problem.
        mine: of the candidate, warm.
        theirs: of the reference, warm.
        auditor: of the candidate's timed calls.
        secret: of the inputs.
        trail: of the evaluation.
        rng: secret; the coins.

    Raises:
        Judged: the candidate changes an input, or an output is wrong.
        ProblemError: the reference fails.
        ChildFailed: a child fails.
    """
    with _drawn(session, secret=secret) as drawn:
        first = len(session.sets) + 1  # the one before is free for what the reference is asked
        sets = {first + at: judged for at, judged in enumerate(drawn)}
        limit_s = session.reference.limit_s
        for child in (mine.child, theirs.child):
            for number, judged in sets.items():
                bind(child, judged, number=number, timeout_s=limit_s)
                # Every page is touched: what is mapped late would count as work.
                check_inputs(child, judged, number=number, limit_s=limit_s, trail=trail)
        found = {}
        sides = [(mine, theirs), (theirs, mine)]
        for own, other in sides if rng.getrandbits(1) else reversed(sides):
            audits = auditor if own is mine else None
            found[own] = list(_pairs(own, other, sets, auditor=audits, rng=rng))
        for child in (mine.child, theirs.child):
            child.ask("unbind", timeout_s=limit_s, numbers=list(sets))
    return Probed(mine=found[mine], theirs=found[theirs])


def _pairs(
    watch: Stopwatch,
    other: Stopwatch,
    sets: dict[int, JudgedSet],
    *,
    auditor: Auditor | None,
    rng: random.Random,
) -> Iterator[Pair]:
    """Time pairs of one child while the other one's is held still, and perhaps ask for one."""
    asked = rng.choice(list(sets))
    for at, (number, judged) in enumerate(sets.items()):
        unseen = watch.on({number: sizes(judged)})
        is_first = bool(rng.getrandbits(1))
        with held(other.child):
            if at == 0:
                watch.run(min(WARM_CALLS, watch.most_calls))
            if not is_first:
                before = watch.run(1, waits=False)
            after = unseen.run(1, waits=False)
        if auditor is not None and number == asked:  # the reference answers, which the other runs
            auditor.audit(unseen, {number: judged})
        if is_first:
            with held(other.child):
                before = watch.run(1, waits=False)
        yield Pair(seen_us=_of_one_call(before), unseen_us=_of_one_call(after))


def _of_one_call(block: Block) -> tuple[float, float]:
    return block.wall_us, block.call_us


@contextmanager
def _drawn(session: Session, *, secret: int) -> Iterator[list[JudgedSet]]:
    """Draw a few of the problem's own inputs; as many as are not too large together."""
    drawn: list[JudgedSet] = []
    held_bytes = size = 0
    try:
        while not drawn or (len(drawn) < MAX_SETS and held_bytes + size <= MAX_BYTES):
            fresh = draw_fresh(session, secret=derived_seed(secret, len(drawn)), name="unseen")
            drawn.append(fresh)
            size = sum(each.spec.num_bytes for each in fresh.tensors)
            held_bytes += size
        yield drawn
    finally:
        for judged in drawn:
            judged.close()
