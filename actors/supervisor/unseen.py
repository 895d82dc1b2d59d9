"""Calls on inputs that a candidate has never seen, against what it says of its timed calls.

In a block of timed calls most of an input stays from call to call. Work kept from one to the next,
by whatever trick, is not there on an input never seen: such a call takes, by our clock, from when
its input is revealed until its output is ours, what a call takes, and what everything beside it
takes; the latter is measured at the reference. Gate 2 makes such calls anyway. Where even the
quickest of them is too long, the host may have been busy: a few more are made on inputs drawn for
this, candidate and reference in turn, and the quickest decides. By how much the host is slower then
than it was before is seen at the reference too.

A call that is handed over also has to wake its threads, for each part that they share: a candidate
of more parts than the reference, and no more work, takes longer by more than the reference shows.
So the same is asked of a call that comes right after others (led_call.py), and a candidate is
refused where both are too long.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from kopt.actors.supervisor.first_call import reference_first_us
from kopt.actors.supervisor.fresh_inputs import draw_fresh
from kopt.actors.supervisor.gates import judge_set
from kopt.actors.supervisor.led_call import Added, time_led_call
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.identity import derived_seed
from kopt.timing import Timing
from kopt.verdict import Cheated

FACTOR = 1.5
SHARE = 0.5
FLOOR_US = 200.0
"""A first call may take longer than a timed one by what the reference's does, times a factor, by
half of the timed call, and by 200 us: caches are cold, threads asleep, pages not mapped yet."""
PROBES = 3
ATTEMPTS = 3
"""Times that so many calls are made, before they count against a candidate."""


@dataclass(slots=True)
class Firsts:
    """Microseconds of one side's calls on inputs that were drawn for it."""

    handed_us: list[float] = field(default_factory=list)
    """Handed over, and nothing else."""
    led: Added = field(default_factory=Added)
    """Right after calls on a known input."""


def check_first_calls(
    bench: Bench,
    session: Session,
    loaded: Loaded,
    *,
    firsts_us: Sequence[float],
    timing: Timing,
    secret: int,
    trail: Trail,
) -> None:
    """Compare first calls with what the candidate says of timed ones.

    Args:
        bench: where children are made.
        session: of the problem, baselines ready.
        loaded: the candidate.
        firsts_us: of gate 2.
        timing: of the race, as it would be reported.
        secret: of the inputs that are drawn where they are needed.
        trail: of the evaluation.

    Raises:
        Judged: first calls are too long.
        ProblemError: the reference fails.
        ChildFailed: the candidate's child fails.
    """
    call_us, eager_us = timing.time_us, _eager_us(session, timing)
    beyond_us = session.baselines.first_us - eager_us
    if min(firsts_us) - call_us <= _allowed_us(beyond_us, call_us):
        trail.passed("first_calls", "calls on inputs never seen take no longer than they should")
        return
    detail = ""
    for attempt in range(ATTEMPTS):
        seed = derived_seed(secret, "probes", attempt)
        mine, theirs = _probe(bench, session, loaded, secret=seed, trail=trail)
        mine_us, theirs_us = mine.handed_us, theirs.handed_us
        beyond_us = max(beyond_us, max(theirs_us) - eager_us)
        slower = max(theirs_us) / min(session.baselines.first_us, *theirs_us)
        if min(mine_us) - slower * call_us <= _allowed_us(beyond_us, call_us):
            trail.passed("first_calls", "further calls on inputs never seen are as they should be")
            return
        led_beyond_us = theirs.led.least_us - eager_us
        if mine.led.least_us - call_us <= _allowed_us(led_beyond_us, call_us):
            trail.passed("first_calls", "calls right after others are as they should be")
            return
        detail = (
            f"a call on an input never seen takes {min(mine_us):.4g} us where it is handed over "
            f"({mine.led.least_us:.4g} us right after others), the reference's "
            f"{statistics.median(theirs_us):.4g} us; of its timed calls the candidate says "
            f"{call_us:.4g} us"
        )
    raise trail.fail("first_calls", Cheated(check="first_calls", detail=detail))


def _eager_us(session: Session, timing: Timing) -> float:
    """Return what the reference's call takes when it is no first one.

    It was measured when the baselines were. Where the host has become calmer since, the race shows
    by how much; otherwise an equal candidate would seem to be quicker than its first calls allow.
    """
    times_us = session.baselines.times_us
    return times_us["eager"] * min(1.0, timing.baseline_us / times_us[timing.baseline])


def _allowed_us(beyond_us: float, call_us: float) -> float:
    return FACTOR * max(beyond_us, 0.0) + SHARE * call_us + FLOOR_US


def _probe(
    bench: Bench, session: Session, loaded: Loaded, *, secret: int, trail: Trail
) -> tuple[Firsts, Firsts]:
    """Make calls on inputs drawn for this; return the candidate's and the reference's."""
    number = len(session.sets)
    mine, theirs = Firsts(), Firsts()
    children = (loaded.child, session.reference.child)
    for attempt in range(PROBES):
        judged, other = (
            draw_fresh(
                session, secret=derived_seed(secret, kind, attempt), name=f"{kind}#{attempt}"
            )
            for kind in ("probe", "led")
        )
        session.run_reference(judged)
        mine.handed_us.append(judge_set(bench, loaded.child, judged, number=number, trail=trail))
        theirs.handed_us.append(reference_first_us(session.reference, judged, number=number))
        for child in children:
            child.ask("unbind", timeout_s=session.reference.limit_s, numbers=[number])
        session.run_reference(other)
        for child, side in zip(children, (mine, theirs), strict=True):
            time_led_call(
                bench,
                session,
                child,
                other,
                number=number,
                added=side.led,
                trail=trail if side is mine else None,
            )
        judged.close()
        other.close()
    return mine, theirs
