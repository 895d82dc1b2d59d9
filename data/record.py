"""A journal record: an event in its envelope, and its form as one line of JSON.

The envelope is `schema`, `seq`, `time_ns`, `run`, `search`, `kind` (CONTRACTS.md, Journal); the
event's own fields follow it in the same flat object.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from kopt.events import EVENT_TYPES, EventBody, body_from_json
from kopt.identity import canonical_json

SCHEMA_VERSION = 1
"""Of journal records. A reader refuses a version that it does not know."""

ENVELOPE = ("schema", "seq", "time_ns", "run", "search", "kind")
"""Keys that every record has, in the order of the columns."""

EVENT_FIELDS = {
    kind: tuple(field.name for field in fields(event_type))
    for kind, event_type in EVENT_TYPES.items()
}
"""Kind of event to the names of its own fields, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One event as it was journalled."""

    seq: int
    """Counts the run's events from 0, without gaps, over all its searches."""
    time_ns: int
    """Nanoseconds since the epoch, when the event was appended."""
    run: str
    """Name of the run."""
    search: str
    """Name of the search, `problem/arm/seed`; empty for events of the whole run."""
    body: EventBody


def record_to_json(record: Record) -> dict[str, Any]:
    """Return the record as one flat object of plain JSON values, shared with the event's own."""
    body = record.body
    return {
        "schema": SCHEMA_VERSION,
        "seq": record.seq,
        "time_ns": record.time_ns,
        "run": record.run,
        "search": record.search,
        "kind": body.kind,
        # Not dataclasses.asdict: it copies the whole evaluation, at thrice the cost of the JSON.
        **{name: getattr(body, name) for name in EVENT_FIELDS[body.kind]},
    }


def record_from_json(fields: dict[str, Any]) -> Record:
    """Return the record of a flat object.

    Raises:
        ValueError: the schema version or kind is unknown, or a field is missing.
    """
    missing = [key for key in ENVELOPE if key not in fields]
    if missing:
        raise ValueError(f"a journal record lacks {', '.join(missing)}")
    if fields["schema"] != SCHEMA_VERSION:
        raise ValueError(
            f"expected journal schema {SCHEMA_VERSION}, found {fields['schema']!r}: "
            "read it with the kopt that wrote it"
        )
    return Record(
        seq=fields["seq"],
        time_ns=fields["time_ns"],
        run=fields["run"],
        search=fields["search"],
        body=body_from_json(fields),
    )


def record_to_line(record: Record) -> bytes:
    """Return the record as one line of UTF-8 JSON, newline included.

    A text that UTF-8 has no form for (a lone surrogate, which a model's JSON can hold) has `?` in
    its place.

    Raises:
        ValueError: a float is not finite.
        TypeError: a field holds something JSON has no form for.
    """
    return canonical_json(record_to_json(record)).encode("utf-8", errors="replace") + b"\n"


def record_from_line(line: bytes) -> Record:
    """Return the record of one line.

    Raises:
        ValueError: the line is not a journal record.
    """
    fields = json.loads(line)
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, found {type(fields).__name__}")
    return record_from_json(fields)
