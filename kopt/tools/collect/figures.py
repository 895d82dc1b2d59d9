"""Cells of a profiler's table: numbers with thousands separators, units, words for unknown."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?([eE][-+]?\d+)?")
UNKNOWN = frozenset({"", "n/a", "nan", "no data", "inf", "-inf", "-"})
"""What stands where a value is unknown; a column that is missing is unknown too."""

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_TIMES_NS = {
    "ns": 1.0,
    "nsecond": 1.0,
    "us": 1e3,
    "usecond": 1e3,
    "ms": 1e6,
    "msecond": 1e6,
    "s": 1e9,
    "second": 1e9,
}
_SCALED = re.compile(r"(?P<prefix>[kmgt]?)(?P<unit>byte|hz|inst|sector|cycle|warp|thread|block)")


def number(cell: str) -> float | None:
    """Return the number in a cell; None where it is unknown or no number.

    Commas separate thousands, in groups of three: a cell with any other comma is no number, since
    it may be a decimal comma.
    """
    text = cell.strip()
    if text.lower() in UNKNOWN or not any(c.isdigit() for c in text):
        return None
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.replace(",", ""))
    return value if math.isfinite(value) else None


def in_base_units(value: float, unit: str) -> float:
    """Return a value in base units: nanoseconds, bytes, hertz, counts; per cent stay per cent.

    Args:
        value: as printed.
        unit: as printed: `us`, `Kbyte`, `Gbyte/s`, `byte/sector`, …; one that is not known is
            taken for a base unit.
    """
    numerator, slash, denominator = unit.strip().partition("/")
    if not slash and numerator.lower() in _TIMES_NS:
        return value * _TIMES_NS[numerator.lower()]
    scaled = _SCALED.fullmatch(numerator.lower())
    factor = _PREFIXES[scaled["prefix"]] if scaled else 1.0
    per = _TIMES_NS.get(denominator.lower(), 1e9) / 1e9 if slash else 1.0
    return value * factor / per
