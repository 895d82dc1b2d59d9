"""Which counters a GPU has, from `ncu --query-metrics`; and which of ours to ask for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from kopt.tools.collect.unreadable import UnreadableProfile, bounded

SOURCE = "ncu --query-metrics"
_NAME = re.compile(r"^([A-Za-z][\w.]*__\w+)\b")
_UNLISTED = ("launch__", "sass__", "memory_")
"""Valid though they are not listed, with what is named whole below (profiling notes A.2)."""
_UNLISTED_NAMES = frozenset({"sm__maximum_warps_per_active_cycle_pct"})

REFUSED = "asked for a counter that this GPU does not have"
"""How the failure of a run begins that asked for an unknown counter; its name follows."""
_REFUSED = re.compile(rf"{REFUSED}: ([\w.]+)")
_UNKNOWN = re.compile(r"Failed to find metric (?:regex:\^)?([\w.]+)")


def refusal(line: str) -> str | None:
    """Return what a line of ncu's log says of a counter that it does not know, None if nothing."""
    found = _UNKNOWN.search(line)
    return None if found is None else f"{REFUSED}: {found[1]}"


def refused_counter(failure: str) -> str | None:
    """Return the base name of the counter that a run failed for, None if for something else."""
    found = _REFUSED.search(failure)
    return None if found is None else found[1]


def parse_metric_names(text: str) -> frozenset[str]:
    """Return the base names of a listing, without suffixes (`dram__bytes_read`).

    Raises:
        UnreadableProfile: it lists none.
    """
    lines = bounded(text, source=SOURCE).splitlines()
    names = frozenset(found[1] for line in lines if (found := _NAME.match(line.strip())))
    if not names:
        first = next((line.strip() for line in lines if line.strip()), "")
        raise UnreadableProfile(SOURCE, f"expected a list of metric names, found {first[:80]!r}")
    return names


def known_counters(wanted: Iterable[str], listed: Collection[str]) -> tuple[str, ...]:
    """Return the counters that a GPU has, in order.

    A name without a suffix that it lacks ends a whole ncu run; one with a suffix reads `n/a`.

    Args:
        wanted: counters with their suffixes.
        listed: base names that the GPU has.
    """
    return tuple(
        name
        for name in wanted
        if name.startswith(_UNLISTED)
        or name in _UNLISTED_NAMES
        or name in listed
        or name.partition(".")[0] in listed
    )
