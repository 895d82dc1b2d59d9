"""Entries of a memory, the tracker's records and precedents as JSON values in the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kopt.errors import StoreError
from kopt.memory.entry import MemoryEntry
from kopt.memory.precedent import Precedent
from kopt.memory.tracker import StrategyRecord

_ENTRIES = TypeAdapter(tuple[MemoryEntry, ...])
_PRECEDENTS = TypeAdapter(tuple[Precedent, ...])
_RECORDS = TypeAdapter(tuple[StrategyRecord, ...])


def values_of(items: Iterable[MemoryEntry | StrategyRecord | Precedent]) -> list[dict[str, Any]]:
    """Return entries, records or precedents as plain values."""
    return [asdict(item) for item in items]


def precedent_from_json(values: Sequence[object]) -> Precedent | None:
    """Return the precedent that a search began with; None where there was none.

    Raises:
        StoreError: it is none.
    """
    try:
        return next(iter(_PRECEDENTS.validate_python(values)), None)
    except ValidationError as error:
        raise StoreError("journal", f"not a precedent: {error.errors()[0]['msg']}") from error


def entries_from_json(values: Sequence[object]) -> tuple[MemoryEntry, ...]:
    """Return the entries of a `memory_updated` event.

    Raises:
        StoreError: they are none.
    """
    try:
        return _ENTRIES.validate_python(values)
    except ValidationError as error:
        raise StoreError("journal", f"not a memory's: {error.errors()[0]['msg']}") from error


def records_from_json(values: Sequence[object]) -> tuple[StrategyRecord, ...]:
    """Return the tracker's records that a search began with.

    Raises:
        StoreError: they are none.
    """
    try:
        return _RECORDS.validate_python(values)
    except ValidationError as error:
        raise StoreError("journal", f"not a tracker's: {error.errors()[0]['msg']}") from error
