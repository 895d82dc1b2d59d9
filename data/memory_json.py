"""Entries of a memory and records of the strategy tracker as JSON values in the journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from pydantic import TypeAdapter, ValidationError

from kopt.errors import StoreError
from kopt.memory.entry import MemoryEntry
from kopt.memory.tracker import StrategyRecord

_ENTRIES = TypeAdapter(tuple[MemoryEntry, ...])
_RECORDS = TypeAdapter(tuple[StrategyRecord, ...])


def values_of(items: Iterable[MemoryEntry | StrategyRecord]) -> list[dict[str, Any]]:
    """Return entries or records as plain values."""
    return [asdict(item) for item in items]


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
