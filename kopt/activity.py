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
BETWEEN_US = 8.0
"""Beside each operation of a CPU's call that nobody can be shown to have spent: the interpreter
reads as code of the candidate's own, and memory that is made is not listed."""
LEAST_BETWEEN, MOST_BETWEEN = 0.1, 0.25
"""Shares of a call: as much is nobody's however few its operations are, and no more however many.
It neither makes nor breaks a fall-back."""
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
    def launches(self) -> int:
        """Of all that is listed."""
        return sum(each.launches for each in self.ran)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class FallBack:
    """Whether a candidate falls back to the reference."""

    is_one: bool
    words: str
    """One line: what it runs."""


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


def fall_back(mine: Activity, *, reference: Activity, made: Provenance) -> FallBack:
    """Return whether a candidate runs the reference's own path, and in words what it does.

    It does where hardly anything is its own, where it runs all that the eager reference runs, once
    or some whole number of times, and hardly anything beside: a rewrite that saves one of the
    reference's operations, or puts another in its place, is no fall-back.

    How long an operation takes does not matter where a kernel of the candidate's own runs in its
    place: an epilogue beside a large product is 2 % of the call on one device and 3 % on another,
    and work of its own on both; how little it is, the shares say. Without a kernel of its own, an
    operation of less than NEGLIGIBLE may be missing: a path that lacks a fill is the reference's
    still. A CPU's code outside torch's operations is no such kernel: where it is so short, it
    cannot be told from the interpreter.

    Args:
        mine: the candidate's call.
        reference: the eager reference's, on the same input.
        made: whose work the candidate's call is.
    """
    other = FallBack(is_one=False, words="it does not run the eager reference's own path")
    if not mine.ran or mine.total_us <= 0.0 or reference.total_us <= 0.0:
        return other
    launches = {each.name: each.launches for each in mine.ran}
    replaced = [each.name for each in reference.ran if launches.get(each.name, 0) < each.launches]
    if replaced and any(part.owner == "user" and part.name != OWN_CODE for part in made.parts):
        same = _same_us(mine, reference=reference) / mine.total_us
        if same < NEGLIGIBLE:
            return other
        names = ", ".join(_short(name) for name in replaced[:SHOWN])
        words = f"{_same_words(same)}; kernels of its own run, and not {names}"
        return FallBack(is_one=False, words=words)
    between_us = min(mine.own_us, _nobodys_us(mine))
    if made.own_share[0] > LITTLE + between_us / mine.total_us:
        return other
    long = [each for each in reference.ran if each.time_us >= NEGLIGIBLE * reference.total_us]
    times = min((launches.get(each.name, 0) // each.launches for each in long), default=0)
    if times < 1:
        return other
    same = _same_us(mine, reference=reference, times=times) / (mine.total_us - between_us)
    if same < SAME_SHARE:
        return other
    theirs = {each.name for each in reference.ran}
    longest = ", ".join(_short(each.name) for each in mine.ran[:SHOWN] if each.name in theirs)
    often = "" if times == 1 else f", {times} times over"
    return FallBack(is_one=True, words=f"{_same_words(same)}{often}: {longest}")


def _same_us(mine: Activity, *, reference: Activity, times: int = 1) -> float:
    """What a call spends in the reference's operations, so many times its launches at most.

    With as much of what is not listed as passes there, or as is nobody's.
    """
    theirs = {each.name: each.launches for each in reference.ran}
    listed_us = sum(
        each.time_us * min(1.0, times * theirs.get(each.name, 0) / each.launches)
        for each in mine.ran
    )
    return listed_us + min(mine.rest_us, max(times * reference.rest_us, _nobodys_us(mine)))


def _nobodys_us(call: Activity) -> float:
    """What nobody can be shown to have spent of a call, at most."""
    by_operation_us = BETWEEN_US * call.launches
    least_us, most_us = (share * call.total_us for share in (LEAST_BETWEEN, MOST_BETWEEN))
    return min(max(by_operation_us, least_us), most_us)


def _same_words(share: float) -> str:
    return f"{share:.0%} of its time is what the eager reference runs"


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else name[: NAME_CHARACTERS - 1] + "…"
