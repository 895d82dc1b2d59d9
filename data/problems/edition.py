"""An edition: KernelBench at one revision, wherever it is read from; levels 1 to 3.

Level 4 needs weights from a model hub and casts token ids to floats: it cannot run as written
(its own harness refuses it too), so it is not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kopt.errors import ConfigError

LEVELS = (1, 2, 3)
FOLDER = "KernelBench"
URL = "https://github.com/ScalingIntelligence/KernelBench"
PROBLEM_FILE = re.compile(rf"{FOLDER}/level(?P<level>\d+)/(?P<number>\d+)_[^/]*\.py")
"""Path of a problem's file in a clone; the number is its id within the level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """The problems of one revision."""

    revision: str
    """Problem.revision of each of them."""
    texts: Mapping[str, Callable[[], str]]
    """Name (`level2/18`) to what reads its source, in the order of levels and ids. Reading raises
    ConfigError where the text cannot be had."""


class Entry(NamedTuple):
    """One problem that an edition may hold."""

    level: int
    number: int
    where: str
    """File or row that it is in, for error texts."""
    read: Callable[[], str]


def edition_of(entries: Iterable[Entry], *, revision: str, where: str) -> Edition:
    """Return the edition of some entries, those of other levels left out.

    Args:
        entries: in any order.
        revision: of all of them.
        where: what they were looked for in, for error texts.

    Raises:
        ConfigError: there are none, or two of them have one level and id.
    """
    texts: dict[str, Callable[[], str]] = {}
    places: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: entry[:3]):
        if entry.level not in LEVELS:
            continue
        name = f"level{entry.level}/{entry.number}"
        if name in texts:
            raise ConfigError(f"{name} is both {places[name]} and {entry.where}; remove one")
        texts[name], places[name] = entry.read, entry.where
    if not texts:
        levels = ", ".join(map(str, LEVELS))
        raise ConfigError(f"{where} holds no problem of levels {levels}")
    return Edition(revision=revision, texts=texts)
