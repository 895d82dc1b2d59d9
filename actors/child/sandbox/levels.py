"""The levels of the sandbox by name, and which of them are wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from kopt.environment import SANDBOX_VARIABLE
from kopt.errors import ConfigError

LevelName = Literal["process", "user", "namespace", "pid", "mount", "landlock", "seccomp", "cgroup"]
LEVELS: tuple[LevelName, ...] = get_args(LevelName)
"""In the order named; `process` is always in force."""


def wanted_levels(stated: str | None) -> tuple[LevelName, ...]:
    """Return the levels to try: those stated, joined by `+`; all where nothing is stated.

    A level that stands on another (`pid` and `mount` on `namespace`) goes with it.

    Raises:
        ConfigError: one is unknown.
    """
    if not stated:
        return LEVELS
    names = {name.strip() for name in stated.split("+")}
    unknown = sorted(names - set(LEVELS))
    if unknown:
        raise ConfigError(
            f"{SANDBOX_VARIABLE}: expected some of {'+'.join(LEVELS)}, found {unknown[0]!r}"
        )
    names.add("process")
    if "namespace" not in names:
        names -= {"pid", "mount"}
    return tuple(level for level in LEVELS if level in names)


def joined(levels: Iterable[str]) -> str:
    """Return the verdict's form, such as `process+namespace+landlock`."""
    return "+".join(level for level in LEVELS if level in set(levels))
