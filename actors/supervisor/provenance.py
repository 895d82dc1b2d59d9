"""Whose work a correct candidate's call is: `library_share`, the track, and falling back.

After gate 4 the candidate's child makes one more forward call under a record of its activity. The
record is the child's own (child/provenance.py says what a lie gains), so it is held against what
is known here: the time that the race found, and the kernels that the candidate's text and build
define. Where it is missing or does not fit, no share is given, and a check says why. Source:
exploits 3, 53-56, §E10; KernelBench issue 57 (two tracks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from kopt.activity import LITTLE, Activity, NothingRan, Provenance, fall_back, provenance
from kopt.actors.devices.base import DeviceName
from kopt.actors.supervisor.activity import NoRecord, recorded_activity, reference_activity
from kopt.actors.supervisor.loading import Loaded
from kopt.actors.supervisor.session import Session
from kopt.actors.supervisor.settings import Bench
from kopt.actors.supervisor.trail import Trail
from kopt.candidate import Candidate
from kopt.evaluation import Check
from kopt.evidence import KernelOwner
from kopt.provenance import (
    Claims,
    identifiers,
    kernel_owner,
    mangled_names,
    operation_owner,
)
from kopt.static_check import static_check
from kopt.timing import Timing
from kopt.verdict import Incorrect

CHECK = "provenance"
SAME_CALL = {"cpu": 10.0, "cuda": 4.0}
"""Factor within which the recorded call takes what the timed one does. Caches, a busy host and a
profiler's own work make a few times, another path tens of times."""
SLACK_US = {"cpu": 200.0, "cuda": 20.0}
"""Shorter differences say nothing."""
LAUNCH_US = 10.0
"""Of a GPU's timed call, for each launch: the device may have to wait for the host."""
MAX_BUILD_BYTES = 256 << 20
"""Read of a candidate's binaries."""
RECORDS = {"cpu": 3, "cuda": 1}
"""Tries at a record that fits: a busy host makes one too long, a GPU's clock does not."""
_BINARIES = (".so", ".cubin", ".o")


@dataclass(slots=True)
class Recorded:
    """What the record of a candidate's call, and of the reference's, said."""

    found: Provenance | None = None
    why: str = ""
    """No share is known; empty where one is."""
    launches: int = 0
    """Of the candidate's call; of the reference's, where no record of it is believed; 0 for
    neither. On a CPU, operations."""
    reference_launches: int = 0
    """Of the reference's, or of the candidate's."""


def record_provenance(
    bench: Bench,
    session: Session,
    candidate: Candidate,
    loaded: Loaded,
    *,
    build_dir: Path | None,
    timing: Timing,
    trail: Trail,
) -> Recorded:
    """Say whose work a correct candidate's call is; fill in the trail's `library_share`.

    Args:
        bench: where children are made.
        session: of the problem.
        candidate: its text says which kernels are its own.
        loaded: the candidate in its child, judged correct and timed.
        build_dir: its binaries say so too; None where it has none.
        timing: what the race found.
        trail: of the evaluation.

    Raises:
        WorkerLost: the zygote is gone.
    """
    number = session.timed()[0]
    said = Recorded()
    try:
        eager = _eager(bench, session, trail=trail)
        said.launches = said.reference_launches = eager.launches if eager is not None else 0
        for _ in range(RECORDS[bench.device]):
            mine = recorded_activity(
                loaded.child,
                number=number,
                seed=session.sets[number].seed,
                limit_s=bench.config.timeouts.timing_s,
            )
            implausible = disbelieved(mine, timing=timing, reference=eager, device=bench.device)
            if implausible is None:
                break
        owner = _owner(bench.device, candidate, build_dir=build_dir, eager=eager)
        made = provenance(mine, owner=owner)
        # Where a CPU's record says that hardly anything is the candidate's own, nobody gains by a
        # lie, and a host that was busy during the race is no reason to know nothing.
        if implausible is not None and (bench.device == "cuda" or made.own_share[0] > LITTLE):
            raise NoRecord(implausible)
        said.launches = mine.launches
        said.reference_launches = said.reference_launches or mine.launches
        said.found = made
        trail.library_share = made.library_share
        _note_fallback(mine, made, eager, trail=trail)
    except (NoRecord, NothingRan) as failure:
        said.why = str(failure)
    if said.found is not None and said.found.library_share is None:
        low, high = said.found.own_share
        said.why = (
            f"its own share is between {low:.0%} and {high:.0%}: its code is too short to be told "
            "from the interpreter's"
        )
    if said.found is not None and not said.why:
        trail.passed(CHECK, said.found.words())
    else:
        trail.checks.append(Check(name=CHECK, passed=False, detail=f"share not known: {said.why}"))
    return said


def unrecorded(trail: Trail) -> tuple[Check, ...]:
    """Return the check of a candidate that never came here; none for one that did."""
    if any(check.name == CHECK for check in trail.checks):
        return ()
    detail = "share not known: only a candidate that is correct is recorded"
    return (Check(name=CHECK, passed=False, detail=detail),)


def disbelieved(
    activity: Activity, *, timing: Timing, reference: Activity | None, device: DeviceName
) -> str | None:
    """Return why a record cannot be of the call that was timed, or None where it can.

    On a GPU the device's clock is the same in both. A CPU that was busy during the race is not when
    the record is made: there the eager reference's record, times the ratio of the two in the race,
    says what is expected; without it nothing is.

    Args:
        activity: recorded; of a GPU, its kernels' time, of a CPU, the whole call's.
        timing: what the race found.
        reference: the eager reference's activity, where it is known.
        device: kind of it.
    """
    if device == "cuda":
        expected_us, waits_us = timing.time_us, LAUNCH_US * activity.launches
    elif reference is not None:
        eager_us = timing.baseline_us if timing.baseline == "eager" else timing.eager_us
        expected_us, waits_us = reference.span_us * timing.time_us / eager_us, 0.0
    else:
        return None
    factor, slack_us = SAME_CALL[device], SLACK_US[device]
    too_short = activity.span_us * factor + slack_us + waits_us < expected_us
    if too_short or activity.span_us > expected_us * factor + slack_us:
        return f"the recorded call took {activity.span_us:.4g} us in place of {expected_us:.4g} us"
    return None


def _eager(bench: Bench, session: Session, *, trail: Trail) -> Activity | None:
    """What the eager reference runs; None with a check where it is not known."""
    try:
        return reference_activity(bench, session)
    except NoRecord as failure:
        trail.checks.append(Check(name=f"{CHECK}:reference", passed=False, detail=str(failure)))
        return None


def _owner(
    device: DeviceName, candidate: Candidate, *, build_dir: Path | None, eager: Activity | None
) -> Callable[[str], KernelOwner]:
    """Return the function that says whose a name is on a device."""
    names = static_check(candidate.source, language=candidate.language).kernels
    claims = Claims(
        names=frozenset(names),
        symbols=_symbols(build_dir) if device == "cuda" and build_dir is not None else frozenset(),
        words=identifiers(candidate.source),
    )
    if device == "cpu":
        return partial(operation_owner, claims=claims)
    elsewhere = frozenset(each.name for each in eager.ran) if eager is not None else frozenset()
    return partial(kernel_owner, claims=claims, elsewhere=elsewhere)


def _note_fallback(
    mine: Activity, found: Provenance, eager: Activity | None, *, trail: Trail
) -> None:
    if eager is None:
        return
    fallen = fall_back(mine, reference=eager, made=found)
    trail.checks.append(Check(name="fallback", passed=not fallen.is_one, detail=fallen.words))


def judge_track(bench: Bench, said: Recorded, *, trail: Trail) -> None:
    """Track `kernels`: what is not shown to be the candidate's own work does not count.

    Raises:
        Judged: it is not.
    """
    if bench.config.track != "kernels":
        return
    found, least = said.found, bench.config.min_own_share
    low, high = found.own_share if found is not None else (0.0, 1.0)
    if found is not None and low > 0.0 and low >= least:
        trail.passed("track", f"{low:.0%} of the device's time is in own kernels")
        return
    if found is not None and (high < least or high <= 0.0):
        detail = (
            f"at least {least:.0%} of the device's time has to be in own kernels, found {low:.0%}: "
            f"{found.words()}"
        )
    else:
        detail = f"only work that is shown to be its own kernels' counts, and here: {said.why}"
    raise trail.fail("track", Incorrect(check="track", detail=detail))


def _symbols(build_dir: Path) -> frozenset[str]:
    """Kernels of a candidate's binaries: CUDA's host code registers each by its mangled name."""
    found: set[str] = set()
    left = MAX_BUILD_BYTES
    for path in sorted(build_dir.rglob("*")):
        if path.suffix in _BINARIES and path.is_file() and not path.is_symlink():
            left -= path.stat().st_size
            if left < 0:
                break
            found.update(mangled_names(path.read_bytes()))
    return frozenset(torch._C._demangle(each) for each in found)
