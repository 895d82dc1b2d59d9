"""Variables of Inductor's `call`: which value each holds, and which share their memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A value that a step writes. It is named like the variable that it is written to."""

    variable: str
    own: bool
    """Whether nothing else that lives shares the memory: the variable may be bound to another
    tensor just as well. False for what is a part of a larger one, or the caller's."""
    of_caller: bool = False
    """Whether it is memory of an argument: the model changes what it was given."""


class Variables:
    """What is alive, as statements are followed in order."""

    def __init__(self) -> None:
        """Know of none."""
        self._value: dict[str, str | None] = {}
        self._memory: dict[str, int] = {}
        self._callers: set[int] = set()
        self._count = 0

    def given(self, name: str) -> None:
        """An argument: its memory is the caller's."""
        self.made(name, holds=name)
        self._callers.add(self._memory[name])

    def made(self, name: str, *, holds: str | None) -> None:
        """A variable with memory of its own; it holds a value, or nothing yet."""
        self._count += 1
        self._value[name] = holds
        self._memory[name] = self._count

    def alias(self, name: str, *, of: str) -> None:
        """A further name for a variable's memory, and for the value in it."""
        if of not in self._memory:
            self.made(name, holds=of)
            return
        self._memory[name] = self._memory[of]
        self._value[name] = self._value[of]

    def forget(self, name: str) -> None:
        """A variable is deleted."""
        self._value.pop(name, None)
        self._memory.pop(name, None)

    def value(self, name: str) -> str | None:
        """Return the value that a variable holds; None for nothing, or for what is no variable."""
        return self._value.get(name)

    def holders(self) -> dict[str, str]:
        """Return a variable for each value that is alive: the one of its own name first."""
        found: dict[str, str] = {}
        for name, value in self._value.items():
            if value is not None and (value not in found or name == value):
                found[value] = name
        return found

    def write(self, name: str) -> Write:
        """A step writes to a variable; it holds the value of its own name from now on."""
        if name not in self._memory:
            self.made(name, holds=name)
        memory = self._memory[name]
        others = [n for n, m in self._memory.items() if m == memory and n != name]
        self._value[name] = name
        for other in others:
            self._value[other] = other
        of_caller = memory in self._callers
        return Write(variable=name, own=not others and not of_caller, of_caller=of_caller)
