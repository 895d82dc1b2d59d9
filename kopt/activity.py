"""The activity of one forward call: what ran on the device, whose it was, and in which shares.

`library_share` is what libraries and torch took of the device's time; the rest is the candidate's
own. On a CPU the candidate's code between torch's operations cannot be told from the interpreter
when it is short: what may be either is kept apart, and where it decides, no share is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kopt.evidence import KernelOwner

MAX_UNSURE = 0.2
"""Width of the interval of the own share above which no share is given."""
SAME_SHARE = 0.95
"""Share of a call's time that has to be what the reference runs, for a fall-back."""
NEGLIGIBLE = 0.02
"""Share of the reference's time below which a kernel of it may be missing."""
LITTLE = 0.05
"""A candidate whose own kernels take less than this may have fallen back."""
INTERPRETER = 0.05
"""Share of a CPU's call that may be the interpreter between short operations, which reads as code
of the candidate's own: it neither makes nor breaks a fall-back."""
SHOWN = 4
"""Kernels that `Provenance.words` names."""
OWN_CODE = "code of its own"
"""What a candidate runs on a CPU outside torch's operations."""
REST = "others"
NAME_CHARACTERS = 60
_WHO: dict[KernelOwner, str] = {"user": "own", "library": "library", "aten": "torch"}


class NothingRan(Exception):
    """A call without any activity has no owners."""

    def __str__(self) -> str:
        return "nothing ran on the device in the call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One kernel, operation, copy or fill, all its launches in one call taken together."""

    name: str
    launches: int
    time_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What one call ran."""

    ran: tuple[Ran, ...]
    """The longest first."""
    rest_us: float = 0.0
    """Of what is not listed."""
    own_us: float = 0.0
    """Of the candidate's code outside what is listed (CPU)."""
    unsure_us: float = 0.0
    """Of what is the candidate's code or the interpreter (CPU)."""
    span_us: float = 0.0
    """In which anything ran: overlapping kernels count once."""

    @property
    def total_us(self) -> float:
        """Device time; what may be the interpreter's is left out."""
        return sum(each.time_us for each in self.ran) + self.rest_us + self.own_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel's part in a call."""

    name: str
    owner: KernelOwner
    share: float
    """Of the device's time, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Whose work a call is."""

    parts: tuple[Part, ...]
    """The longest first; shares add up to 1."""
    own_share: tuple[float, float]
    """At least and at most, 0 to 1."""

    @property
    def library_share(self) -> float | None:
        """Share of libraries and torch; None where it is not sure enough."""
        low, high = self.own_share
        return None if high - low > MAX_UNSURE else 1.0 - low

    def words(self) -> str:
        """Return one line: each owner's share, and the kernels that take most."""
        owners = (
            f"{_WHO[owner]} {share:.0%}"
            for owner in _WHO
            if (share := sum(each.share for each in self.parts if each.owner == owner)) > 0.0
        )
        shown = (
            f"{_short(each.name)} {each.share:.0%} ({_WHO[each.owner]})"
            for each in self.parts[:SHOWN]
        )
        more = len(self.parts) - SHOWN
        return f"{', '.join(owners)}: {', '.join(shown)}" + (f", {more} more" if more > 0 else "")


def provenance(activity: Activity, *, owner: Callable[[str], KernelOwner]) -> Provenance:
    """Attribute a call's time.

    Args:
        activity: of the call.
        owner: given the name of what ran.

    Raises:
        NothingRan: nothing ran.
    """
    total_us = activity.total_us
    if total_us <= 0.0:
        raise NothingRan
    entries: list[tuple[str, KernelOwner, float]] = [
        (each.name, owner(each.name), each.time_us) for each in activity.ran
    ]
    entries.append((OWN_CODE, "user", activity.own_us))
    entries.append((REST, "library", activity.rest_us))
    parts = [
        Part(name=name, owner=whose, share=us / total_us) for name, whose, us in entries if us > 0.0
    ]
    own_us = sum(us for _, whose, us in entries if whose == "user")
    return Provenance(
        parts=tuple(sorted(parts, key=lambda part: -part.share)),
        own_share=(
            own_us / total_us,
            (own_us + activity.unsure_us) / (total_us + activity.unsure_us),
        ),
    )


def fallen_back(mine: Activity, *, reference: Activity, own_share: float) -> str | None:
    """Return why a candidate runs the reference's own path, or None where it does not.

    It does where hardly anything is its own, where it runs all that the eager reference runs, once
    or some whole number of times, and hardly anything beside: a rewrite that saves one of the
    reference's operations, or puts another in its place, is no fall-back.

    Args:
        mine: the candidate's call.
        reference: the eager reference's, on the same input.
        own_share: of the candidate, 0 to 1.
    """
    between_us = min(mine.own_us, INTERPRETER * mine.total_us)
    if not mine.ran or mine.total_us <= 0.0 or reference.total_us <= 0.0:
        return None
    if own_share > LITTLE + between_us / mine.total_us:
        return None
    launches = {each.name: each.launches for each in mine.ran}
    theirs = {each.name: each.launches for each in reference.ran}
    long = [each for each in reference.ran if each.time_us >= NEGLIGIBLE * reference.total_us]
    times = min((launches.get(each.name, 0) // each.launches for each in long), default=0)
    if times < 1:
        return None
    same_us = sum(
        each.time_us * min(1.0, times * theirs.get(each.name, 0) / each.launches)
        for each in mine.ran
    )
    same = same_us / (mine.total_us - between_us)
    if same < SAME_SHARE:
        return None
    longest = ", ".join(_short(each.name) for each in mine.ran[:SHOWN] if each.name in theirs)
    often = "" if times == 1 else f", {times} times over"
    return f"{same:.0%} of its time is what the eager reference runs{often}: {longest}"


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else name[: NAME_CHARACTERS - 1] + "…"
