"""Journal parts: sealed Parquet files with the columns of the JSON lines, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic_core import from_json

from kopt.data.atomic import replacing
from kopt.data.record import ENVELOPE, EVENT_FIELDS, Record, record_from_json
from kopt.data.schema import JOURNAL_SCHEMA
from kopt.errors import StoreError
from kopt.events import EVENT_TYPES
from kopt.identity import canonical_json

_JSON_COLUMNS = frozenset(
    field.name for field in JOURNAL_SCHEMA if b"json" in (field.metadata or {})
)
_INTEGERS = frozenset(field.name for field in JOURNAL_SCHEMA if pa.types.is_integer(field.type))
_BOOLEANS = {
    kind: frozenset(field.name for field in fields(event_type) if field.type == "bool")
    for kind, event_type in EVENT_TYPES.items()
}
"""Fields that are a bool in this kind of event; their column may be wider (`failed`)."""
_JSON_FIELDS = {
    kind: tuple(name for name in names if name in _JSON_COLUMNS)
    for kind, names in EVENT_FIELDS.items()
}

READ_ROWS = 1_000
"""Rows decoded at once while reading: bounds the reader's memory."""


def write_part(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Seal journal records, as flat JSON objects, into a part.

    Raises:
        StoreError: it cannot be written, or a record has a key or a value that the columns have
            no place for; no part is left.
    """
    rows = list(records)
    try:
        columns = _columns(rows, path=path)
        table = pa.Table.from_arrays(
            [pa.array(columns[field.name], type=field.type) for field in JOURNAL_SCHEMA],
            schema=JOURNAL_SCHEMA,
        )
        with replacing(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise StoreError(str(path), f"cannot be sealed: {error}") from error


def read_part(path: Path) -> Iterator[Record]:
    """Give the records of a part, in order.

    Raises:
        StoreError: it cannot be read, or holds what is not a journal record.
    """
    row_number = 0
    try:
        with pq.ParquetFile(path) as part:
            for batch in part.iter_batches(batch_size=READ_ROWS):
                columns = _given(batch)
                for place, kind in enumerate(columns["kind"]):
                    row_number += 1
                    yield record_from_json(_flat(columns, kind, place))
    except (pa.ArrowException, OSError) as error:
        raise StoreError(str(path), f"not a journal part: {error}") from error
    except (KeyError, ValueError) as error:
        raise StoreError(f"{path} row {row_number}", f"not a journal record: {error}") from error


def last_seq(path: Path) -> int:
    """Return the sequence number of a part's last record.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        column = pq.read_table(path, columns=["seq"]).column("seq")
        return int(column[-1].as_py())
    except (pa.ArrowException, OSError, IndexError, KeyError) as error:
        raise StoreError(str(path), f"not a journal part: {error}") from error


def _columns(rows: list[dict[str, Any]], *, path: Path) -> dict[str, list[Any]]:
    """Return each column's values: a record has a dozen keys, and there are sixty columns.

    Raises:
        StoreError: a record has a key that no column is for.
    """
    columns: dict[str, list[Any]] = {name: [None] * len(rows) for name in JOURNAL_SCHEMA.names}
    for number, row in enumerate(rows):
        for key, value in row.items():
            column = columns.get(key)
            if column is None:
                unknown = sorted({key for row in rows for key in row} - columns.keys())
                raise StoreError(str(path), f"no column for {', '.join(unknown)}")
            if value is None:
                continue
            if key in _JSON_COLUMNS:
                value = canonical_json(value)
            elif value is True or value is False:
                value = int(value) if key in _INTEGERS else value
            column[number] = value
    return columns


def _given(batch: pa.RecordBatch) -> dict[str, Sequence[Any]]:
    """Return each column's values: an older part lacks later columns, and most are null."""
    nulls = [None] * batch.num_rows
    return {
        name: nulls if column.null_count == batch.num_rows else column.to_pylist()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }


def _flat(columns: Mapping[str, Sequence[Any]], kind: str, place: int) -> dict[str, Any]:
    """Return a row's own fields: a dozen of sixty columns."""
    keys = (*ENVELOPE, *EVENT_FIELDS.get(kind, ()))
    flat = {key: columns[key][place] for key in keys if key in columns}
    for key in _JSON_FIELDS.get(kind, ()):
        if flat.get(key) is not None:
            # Equal texts are one: a third of an evaluation's memory, of which a run has 100,000.
            flat[key] = from_json(flat[key], cache_strings="all")
    for key in _BOOLEANS.get(kind, frozenset()):
        flat[key] = bool(flat[key])
    return flat
