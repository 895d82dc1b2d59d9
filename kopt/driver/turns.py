"""Whose turn it is: the one mechanism that decides which job of a fleet asks next.

A fleet has places for so many expansions under way. Whoever would ask takes a seat, and says when
it is hungry; a free place is granted to the hungry seat

1. of the highest priority,
2. of the arm that has used least of what is shared out (candidates, device seconds or tokens),
   counting what it has under way at the fleet's mean,
3. that has waited longest.

Nobody waits for a place that nobody else wants, so that no lane idles for fairness' sake; an arm
that fell behind is served first until it has caught up. Pure: no clock, one thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kopt.driver.limits import Spent

Share = Literal["candidates", "gpu_s", "tokens"]
"""Of what every arm gets as much."""


@dataclass(slots=True, kw_only=True)
class Arm:
    """One arm of the fleet: every job of the same name."""

    name: str
    spent: Spent = field(default_factory=Spent)
    """By all of its jobs."""
    granted: int = 0
    """Places that its seats may fill and have not yet."""
    running: int = 0
    """Places that they fill."""


@dataclass(slots=True, kw_only=True, eq=False)
class Seat:
    """A job's place at the table."""

    arm: Arm
    priority: int
    on_turn: Callable[[], None]
    """Called when a place is granted to it that it did not ask for just now."""
    hungry: bool = False
    """Whether it waits in the queue of its arm."""
    granted: int = 0
    running: int = 0


class Turns:
    """The places of a fleet, and who may fill them."""

    def __init__(self, *, places: int, share: Share = "candidates") -> None:
        """Begin with every place free.

        Args:
            places: expansions under way at once, >= 1.
            share: what arms get alike.
        """
        self._free = places
        self._share = share
        self._arms: dict[str, Arm] = {}
        self._queues: dict[tuple[int, str], deque[Seat]] = {}
        """Seats that wait, by priority and arm; those that are no longer hungry are passed over."""
        self._ended = 0
        """Expansions that are over: what the mean is over."""

    def grow(self, places: int) -> None:
        """Have so many places more, >= 0: machines have joined."""
        self._free += places
        self._deal()

    def arm(self, name: str) -> Arm:
        """Return the arm of a name; its `spent` is for its jobs to be counted in."""
        return self._arms.setdefault(name, Arm(name=name))

    def sit(self, arm: str, *, priority: int, on_turn: Callable[[], None]) -> Seat:
        """Take a seat.

        Args:
            arm: its name.
            priority: those of a higher one are served first.
            on_turn: called when a place was granted while it waited.
        """
        return Seat(arm=self.arm(arm), priority=priority, on_turn=on_turn)

    def wants(self, seat: Seat) -> bool:
        """Return whether a seat may fill a place now; one that may not is hungry from now on."""
        if not seat.granted:
            if not seat.hungry:
                seat.hungry = True
                key = (seat.priority, seat.arm.name)
                self._queues.setdefault(key, deque()).append(seat)
            self._deal(but_wake_not=seat)
        return seat.granted > 0

    def fill(self, seat: Seat) -> None:
        """An expansion of this seat is under way: by a grant, or because it could not wait."""
        if seat.granted:
            seat.granted -= 1
            seat.arm.granted -= 1
        else:
            self._free -= 1
        seat.running += 1
        seat.arm.running += 1

    def over(self, seat: Seat) -> None:
        """An expansion of this seat is over."""
        seat.running -= 1
        seat.arm.running -= 1
        self._free += 1
        self._ended += 1
        self._deal()

    def passes(self, seat: Seat) -> None:
        """A seat has nothing to ask: what was granted to it goes to others."""
        self._free += self._cleared(seat)
        self._deal()

    def leave(self, seat: Seat) -> None:
        """A job is over, whatever became of it: its places are free."""
        self._free += self._cleared(seat) + seat.running
        seat.arm.running -= seat.running
        seat.running = 0
        self._deal()

    def _cleared(self, seat: Seat) -> int:
        """Take back what a seat was granted; return how many places that is."""
        if seat.hungry:
            seat.hungry = False
            self._queues[seat.priority, seat.arm.name].remove(seat)
        granted, seat.granted = seat.granted, 0
        seat.arm.granted -= granted
        return granted

    def _deal(self, *, but_wake_not: Seat | None = None) -> None:
        while self._free > 0:
            waiting = [key for key, queue in self._queues.items() if queue]
            if not waiting:
                return
            first = min(waiting, key=lambda key: (-key[0], self._used(self._arms[key[1]])))
            seat = self._queues[first].popleft()
            seat.hungry = False
            seat.granted += 1
            seat.arm.granted += 1
            self._free -= 1
            if seat is not but_wake_not:
                seat.on_turn()

    def _used(self, arm: Arm) -> float:
        """What an arm has used, with an estimate of what is under way: the fleet's mean each."""
        match self._share:
            case "candidates":  # counted when they are asked for
                return float(arm.spent.candidates + arm.granted)
            case "gpu_s":
                used = [each.spent.device_s for each in self._arms.values()]
                own = arm.spent.device_s
            case "tokens":
                used = [float(each.spent.tokens) for each in self._arms.values()]
                own = float(arm.spent.tokens)
        mean = sum(used) / self._ended if self._ended else 0.0
        return own + (arm.granted + arm.running) * (mean or 1.0)
