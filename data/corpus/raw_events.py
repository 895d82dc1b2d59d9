"""The journal as plain rows, read past whatever is damaged in it: what is lost is counted.

Resume and replay read by `kopt.data.journal_files.read_events`, which refuses a damaged journal. A
corpus is made of what is there. Each kind of event is decoded with its own columns alone, and JSON
columns stay text: several times as fast as whole records, and the same bytes come out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kopt.data.corpus.losses import Losses
from kopt.data.corpus.upgrades import upgraded
from kopt.data.journal_files import file_numbers, open_path, part_path, read_lines
from kopt.data.record import ENVELOPE, EVENT_FIELDS, SCHEMA_VERSION
from kopt.data.schema import JOURNAL_SCHEMA
from kopt.identity import canonical_json

Event = dict[str, Any]
"""A row of the journal: the envelope's keys, and those of its kind as far as the file has them."""

BATCH_ROWS = 4_096
JSON_COLUMNS = frozenset(
    field.name for field in JOURNAL_SCHEMA if b"json" in (field.metadata or {})
)
_by_seq = itemgetter("seq")


def raw_events(folder: Path, losses: Losses) -> Iterator[Event]:
    """Give the events of a journal in order, in constant memory; a driver may be writing to it.

    Args:
        folder: the journal's.
        losses: told of parts and lines that cannot be read, and of events that are missing.

    Raises:
        StoreError: the folder cannot be listed.
    """
    expected = 0
    for number in file_numbers(folder):
        part, lines = part_path(folder, number), open_path(folder, number)
        events = _of_part(part, losses) if part.exists() else _of_lines(lines, losses)
        for event in events:
            seq = event["seq"]
            if seq < expected:
                losses.lose("repeated event", f"{folder.name} seq {seq}")
                continue
            if seq > expected:
                missing = f"seq {expected} to {seq - 1}"
                losses.lose("missing event", missing, times=seq - expected)
            expected = seq + 1
            why = upgraded(event)
            if why:
                losses.lose("event that is not whole", f"seq {seq}", why=why)
            else:
                yield event


def events_of(folder: Path, search: str) -> Iterator[Event]:
    """Give what can be read of one search's events, in order; the rest of a journal is skipped.

    Args:
        folder: the journal's.
        search: its name.

    Raises:
        StoreError: the folder cannot be listed.
    """
    losses = Losses()
    for number in file_numbers(folder):
        part, lines = part_path(folder, number), open_path(folder, number)
        if part.exists():
            events = _of_part(part, losses, search=search)
        else:
            events = (event for event in _of_lines(lines, losses) if event["search"] == search)
        yield from (event for event in events if not upgraded(event))


def search_ends(folder: Path) -> dict[str, int]:
    """Return where each search ended last: its name to the sequence number of that event.

    What cannot be read is passed over; `raw_events` tells of it.
    """
    ends: dict[str, int] = {}
    for number in file_numbers(folder):
        part, lines = part_path(folder, number), open_path(folder, number)
        try:
            rows = _ends_of_part(part) if part.exists() else _ends_of_lines(lines)
            ends.update(rows)
        except (pa.ArrowException, OSError, KeyError):
            continue
    return ends


def _of_part(path: Path, losses: Losses, *, search: str | None = None) -> Iterator[Event]:
    try:
        with pq.ParquetFile(path) as part:
            version = _version(part)
            if version != SCHEMA_VERSION:
                why = f"expected schema {SCHEMA_VERSION}, found {version}"
                losses.lose("part of another version", path.name, why=why)
                return
            for batch in part.iter_batches(batch_size=BATCH_ROWS):
                if search is not None:
                    batch = batch.filter(pc.equal(batch.column("search"), pa.scalar(search)))
                yield from _of_batch(batch, where=path.name, losses=losses)
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        losses.lose("part that cannot be read", path.name, why=_first_line(error))


def _version(part: pq.ParquetFile) -> int | str:
    stated = (part.schema_arrow.metadata or {}).get(b"kopt.journal.schema", b"?").decode()
    return int(stated) if stated.isdigit() else stated


def _of_batch(batch: pa.RecordBatch, *, where: str, losses: Losses) -> list[Event]:
    events: list[Event] = []
    kinds = batch.column("kind")
    for kind in map(str, pc.unique(kinds).to_pylist()):
        own = EVENT_FIELDS.get(kind)
        rows = batch.filter(pc.equal(kinds, pa.scalar(kind)))
        if own is None:
            losses.lose("event of an unknown kind", where, why=str(kind), times=rows.num_rows)
            continue
        names = [name for name in (*ENVELOPE, *own) if name in batch.schema.names]
        events += rows.select(names).to_pylist()
    events.sort(key=_by_seq)
    return events


def _of_lines(path: Path, losses: Losses) -> Iterator[Event]:
    try:
        for number, line in read_lines(path):
            where = f"{path.name}:{number}"
            try:
                event = json.loads(line)
            except ValueError as error:
                losses.lose("line that cannot be read", where, why=_first_line(error))
                continue
            if not isinstance(event, dict) or any(key not in event for key in ENVELOPE):
                losses.lose("line that cannot be read", where, why="not a journal record")
            elif event["schema"] != SCHEMA_VERSION:
                why = f"expected schema {SCHEMA_VERSION}, found {event['schema']!r}"
                losses.lose("line of another version", where, why=why)
            elif event["kind"] not in EVENT_FIELDS:
                losses.lose("event of an unknown kind", where, why=str(event["kind"]))
            else:
                yield _as_in_a_part(event)
    except OSError as error:
        losses.lose("part that cannot be read", path.name, why=error.strerror or str(error))


def _as_in_a_part(event: Event) -> Event:
    for key in JSON_COLUMNS & event.keys():
        if event[key] is not None:
            event[key] = canonical_json(event[key])
    return event


def _ends_of_part(path: Path) -> Iterator[tuple[str, int]]:
    table = pq.read_table(path, columns=["search", "seq", "kind"])
    rows = table.filter(pc.equal(table.column("kind"), pa.scalar("search_ended")))
    for row in rows.to_pylist():
        yield row["search"], row["seq"]


def _ends_of_lines(path: Path) -> Iterator[tuple[str, int]]:
    for _, line in read_lines(path):
        if b'"search_ended"' not in line:
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and event.get("kind") == "search_ended":
            yield str(event.get("search")), int(event.get("seq", -1))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
