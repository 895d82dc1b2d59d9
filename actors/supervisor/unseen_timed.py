"""Timed calls on inputs that a candidate has never seen, against those on inputs that it has.

Between the timed calls of a race most of an input stays. A candidate that keeps its last input and
output, and computes anew only where the input has changed, is right on any input, and quick only
there. What unseen.py compares includes handing inputs and outputs over, beside which a call of a
millisecond hides. Here two blocks of a few calls are compared, by our clock and by the child's: the
same command, on inputs that were bound and read before but never given to the module, and on those
that it knows. What an honest call takes longer on the first, caches that are cold, is seen at the
reference too.

Made of candidates that seem faster: the others have gained nothing. Source: exploits 18, 19.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.gates import check_inputs
from kopt.actors.supervisor.held import held
from kopt.actors.supervisor.inputs import JudgedSet, checksum, sizes
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.reference import bind
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.stopwatch import Stopwatch
from kopt.actors.supervisor.trail import Trail
from kopt.identity import derived_seed
from kopt.overhead import Block
from kopt.timing import Timing
from kopt.verdict import Cheated

GAIN = 1.02
"""Speed-up from which on it is looked at."""
FACTOR = 1.5
SHARE = 0.1
FLOOR_US: dict[DeviceName, float] = {"cpu": 10.0, "cuda": 5.0}
"""A call on an input never seen may take longer by what the reference's does, times a factor, by a
tenth of the timed call, and by so many microseconds."""
COLD_BYTES_PER_US: dict[DeviceName, float] = {"cpu": 10e3, "cuda": 500e3}
"""And by reading the inputs from memory, at least so fast, where known ones lie in a cache."""
MAX_SETS = 16
MAX_BYTES = 64 << 20
"""Of the inputs of one probe together; one is drawn at any size."""
WARM_CALLS = 4
"""Before each block that counts: threads are awake, and clocks up."""
PROBES = 3
ATTEMPTS = 3
"""Times that so many probes are made, before they count against a candidate: a host that is busy
during one only adds."""


@dataclass(slots=True)
class Longer:
    """Microseconds of one call in blocks on either kind of input, by our clock and the child's."""

    seen_us: list[tuple[float, float]] = field(default_factory=list)
    unseen_us: list[tuple[float, float]] = field(default_factory=list)

    def least_us(self, clock: int) -> float:
        """How much longer the quickest block is on inputs never seen."""
        return min(each[clock] for each in self.unseen_us) - min(
            each[clock] for each in self.seen_us
        )

    def most_us(self, clock: int) -> float:
        """How much longer any block was on inputs never seen."""
        return max(each[clock] for each in self.unseen_us) - min(
            each[clock] for each in self.seen_us
        )


def check_unseen_timed(
    bench: Bench,
    session: Session,
    loaded: Loaded,
    watch: Stopwatch,
    *,
    timing: Timing,
    secret: int,
    trail: Trail,
) -> None:
    """Compare timed calls on inputs never seen with those on inputs that are known.

    Args:
        bench: where children are made.
        session: of the problem, baselines ready.
        loaded: the candidate.
        watch: of the candidate, warm.
        timing: of the race, as it would be reported.
        secret: of the inputs that are drawn.
        trail: of the evaluation.

    Raises:
        Judged: those on inputs never seen are too long.
        ProblemError: the reference fails.
        ChildFailed: the candidate's child fails.
    """
    if timing.speedup < GAIN:
        trail.passed("unseen_timed", "not looked at: no gain is claimed")
        return
    mine, theirs = Longer(), Longer()
    for attempt in range(ATTEMPTS):
        for probe in range(PROBES):
            drawn = _drawn(session, secret=derived_seed(secret, "unseen", attempt, probe))
            _probe(session, loaded, watch, drawn, mine=mine, theirs=theirs, trail=trail)
            for judged in drawn:
                judged.close()
        why = too_long(
            mine,
            theirs,
            call_us=timing.time_us,
            device=bench.device,
            input_bytes=sum(each.spec.num_bytes for each in session.sets[0].tensors),
        )
        if why is None:
            trail.passed("unseen_timed", "a timed call takes as long on an input never seen")
            return
    raise trail.fail("first_calls", Cheated(check="first_calls", detail=why or ""))


def too_long(
    mine: Longer, theirs: Longer, *, call_us: float, device: DeviceName, input_bytes: int = 0
) -> str | None:
    """Return why a candidate's calls on inputs never seen are too long, or None where they are not.

    Args:
        mine: of the candidate; its quickest blocks count, since a busy host only adds.
        theirs: of the reference; its longest does.
        call_us: one call, as the candidate says.
        device: kind of device.
        input_bytes: of one input set.
    """
    cold_us = input_bytes / COLD_BYTES_PER_US[device]
    for clock, whose in enumerate(("our", "its own")):
        longer_us, beyond_us = mine.least_us(clock), theirs.most_us(clock)
        allowed_us = FACTOR * max(beyond_us, 0.0) + SHARE * call_us + FLOOR_US[device] + cold_us
        if longer_us > allowed_us:
            return (
                f"by {whose} clock a timed call takes {longer_us:.4g} us longer on an input never "
                f"seen than on one that is known, the reference's {beyond_us:.4g} us at most; of "
                f"its calls the candidate says {call_us:.4g} us"
            )
    return None


def _drawn(session: Session, *, secret: int) -> list[JudgedSet]:
    """Draw a few of the problem's own inputs; as many as are not too large together."""
    drawn: list[JudgedSet] = []
    size, held_bytes = 1, 0
    while not drawn or (len(drawn) < MAX_SETS and held_bytes + size <= MAX_BYTES):
        seed = derived_seed(secret, len(drawn)) % (1 << 31)
        tree, tensors = session.reference.draw(seed=seed)
        size = sum(each.spec.num_bytes for each in tensors)
        held_bytes += size
        drawn.append(
            JudgedSet(
                name="unseen",
                state=len(session.states) - 1,
                seed=seed,
                tree=tree,
                tensors=[each.seal() for each in tensors],
                checksum=checksum([each.tensor for each in tensors]),
            )
        )
    return drawn


def _probe(
    session: Session,
    loaded: Loaded,
    watch: Stopwatch,
    drawn: list[JudgedSet],
    *,
    mine: Longer,
    theirs: Longer,
    trail: Trail,
) -> None:
    """Time both on inputs that neither was given, and on those that both know."""
    limit_s = session.reference.limit_s
    eager = session.baselines.watch("eager")
    sets = {len(session.sets) + at: judged for at, judged in enumerate(drawn)}
    for child in (loaded.child, eager.child):
        for number, judged in sets.items():
            bind(child, judged, number=number, timeout_s=limit_s)
            # Every page is touched: what is mapped late would count as work.
            check_inputs(child, judged, number=number, limit_s=limit_s, trail=trail)
    # Half as many calls as inputs, which come at random: few of them come twice.
    calls = max(1, min(len(drawn) // 2, watch.most_calls))
    unseen = {number: sizes(judged) for number, judged in sets.items()}
    for own, other, longer in ((watch, eager, mine), (eager, watch, theirs)):
        with held(other.child):
            own.block(min(WARM_CALLS, own.most_calls))
            longer.seen_us.append(_of_one_call(own.block(calls)))
            own.block(min(WARM_CALLS, own.most_calls))
            longer.unseen_us.append(_of_one_call(own.on(unseen).block(calls)))
    for child in (loaded.child, eager.child):
        child.ask("unbind", timeout_s=limit_s, numbers=list(sets))


def _of_one_call(block: Block) -> tuple[float, float]:
    return block.wall_us / block.calls, block.call_us
