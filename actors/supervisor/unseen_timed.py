"""Timed calls on inputs that a candidate has never seen, against those on inputs that it has.

Between the timed calls of a race most of an input stays. A candidate that keeps its last input and
output, and computes anew only where the input has changed, is right on any input, and quick only
there. What unseen.py compares includes handing inputs and outputs over, beside which a call of a
millisecond hides. Here pairs of timed calls are compared, by our clock and by the child's
(unseen_probe.py), until they tell (kopt.unseen_calls): on a calm host a dozen do.

Where the host is so busy that all pairs that there is time for cannot tell, nobody is refused, and
no more is claimed than would hold if calls on unseen inputs took as long as they may.

Made of candidates that seem faster: the others have gained nothing. Source: exploits 18, 19.
"""

from __future__ import annotations

import math
import random
import time

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.audit import Auditor
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.actors.supervisor.unseen_probe import probe
from kopt.identity import derived_seed
from kopt.timing import Timing
from kopt.unseen_calls import Allowed, Pair, Unseen, as_it_holds, look_at
from kopt.verdict import Cheated

GAIN = 1.02
"""Speed-up from which on it is looked at."""
FLOOR_US: dict[DeviceName, float] = {"cpu": 10.0, "cuda": 5.0}
"""A call on an input never seen may take so much longer, whatever it is."""
COLD_BYTES_PER_US: dict[DeviceName, float] = {"cpu": 10e3, "cuda": 500e3}
"""And by reading the inputs from memory, at least so fast, where known ones lie in a cache."""
PROBES = 9
"""At most; on a calm host one or two, unless a single input is large."""
MOST_S = 4.0
"""A probe that would begin later is not made, once there are pairs enough for an upper limit: with
fewer, nothing is left of a gain that they leave open."""
MOST_OF_FEW_S = 20.0
"""Where inputs are so large that those take longer, none is made after this."""


def check_unseen_timed(
    session: Session,
    watch: Stopwatch,
    *,
    auditor: Auditor,
    timing: Timing,
    rng: random.Random,
    trail: Trail,
) -> Timing:
    """Compare timed calls on inputs never seen with those on inputs that are known.

    Args:
        session: of the problem, baselines ready.
        watch: of the candidate, warm.
        auditor: of its timed calls.
        timing: of the race, as it would be reported.
        rng: secret; of the inputs and the coins.
        trail: of the evaluation.

    Returns:
        The timing; with a smaller gain, and an interval that reaches lower, where the host is too
        busy to tell.

    Raises:
        Judged: those on inputs never seen are too long, or wrong.
        ProblemError: the reference fails.
        ChildFailed: the candidate's child fails.
    """
    if timing.speedup < GAIN:
        trail.passed("unseen_timed", "not looked at: no gain is claimed")
        return timing
    found = _look(session, watch, auditor, timing=timing, rng=rng, trail=trail)
    if found.finding == "too_long":
        raise trail.fail("first_calls", Cheated(check="first_calls", detail=found.why))
    if found.finding == "fine":
        trail.passed("unseen_timed", "a timed call takes as long on an input never seen")
        return timing
    trail.passed(
        "unseen_timed",
        "the host is too busy to tell whether a timed call takes as long on an input never seen: "
        f"{found.longer - 1.0:.0%} longer, {found.most - 1.0:.0%} at most, are taken off the gain",
    )
    return as_it_holds(timing, found)


def _look(
    session: Session,
    watch: Stopwatch,
    auditor: Auditor,
    *,
    timing: Timing,
    rng: random.Random,
    trail: Trail,
) -> Unseen:
    """Make probes until they tell, or there are enough."""
    eager = session.baselines.watch("eager")
    input_bytes = sum(each.spec.num_bytes for each in session.sets[0].tensors)
    allowed = Allowed(
        call_us=timing.time_us,
        floor_us=FLOOR_US[watch.device],
        cold_us=input_bytes / COLD_BYTES_PER_US[watch.device],
    )
    mine: list[Pair] = []
    theirs: list[Pair] = []
    secret = rng.getrandbits(64)
    began_s = time.monotonic()
    for number in range(PROBES):
        seed = derived_seed(secret, "unseen", number)
        probed = probe(session, watch, eager, auditor=auditor, secret=seed, trail=trail, rng=rng)
        mine += probed.mine
        theirs += probed.theirs
        found = look_at(mine, theirs=theirs, allowed=allowed)
        took_s = time.monotonic() - began_s
        most_s = MOST_S if math.isfinite(found.most) else MOST_OF_FEW_S
        if found.finding != "open" or took_s > most_s:
            break
    return found
