"""Every event comes back equal, from a line of JSON and from a Parquet part."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopt.data.parts import read_part, write_part
from kopt.data.record import (
    ENVELOPE,
    Record,
    record_from_json,
    record_from_line,
    record_to_json,
    record_to_line,
)
from kopt.data.schema import JOURNAL_SCHEMA
from kopt.errors import StoreError
from kopt.evaluation import EvalJson
from kopt.events import EVENT_TYPES, AnswerReceived, EventBody
from kopt.testing.sample_journal import sample_events

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
STRATEGIES: dict[object, st.SearchStrategy[Any]] = {
    int: INTS,
    float: FLOATS,
    bool: st.booleans(),
    str: TEXTS,
    str | None: st.none() | TEXTS,
    int | None: st.none() | INTS,
    float | None: st.none() | FLOATS,
    list[str]: st.lists(TEXTS, max_size=2),
    dict[str, Any] | None: st.none() | OBJECTS,
    dict[str, Any]: OBJECTS,
    list[dict[str, Any]]: st.lists(OBJECTS, max_size=2),
    EvalJson: OBJECTS,
}


def bodies() -> st.SearchStrategy[EventBody]:
    """Any event of any kind: a field of a type that is not listed above fails here."""
    return st.one_of(
        st.builds(
            event_type,
            **{
                name: STRATEGIES.get(hint, TEXTS)
                for name, hint in get_type_hints(event_type).items()
                if name != "kind"
            },
        )
        for event_type in EVENT_TYPES.values()
    )


def records() -> st.SearchStrategy[Record]:
    return st.builds(Record, seq=INTS, time_ns=INTS, run=TEXTS, search=TEXTS, body=bodies())


@given(records())
def test_a_line_gives_its_record_back(record: Record) -> None:
    line = record_to_line(record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert record_from_line(line) == record


@given(st.lists(records(), max_size=8))
def test_a_part_gives_its_records_back(written: list[Record]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "part.parquet"
        write_part(path, [record_to_json(record) for record in written])
        assert list(read_part(path)) == written


def test_a_part_has_the_columns_of_the_lines() -> None:
    """Each key of each kind of event is a column, and no column is without an event."""
    names = {f.name for event_type in EVENT_TYPES.values() for f in fields(event_type)}
    assert set(JOURNAL_SCHEMA.names) == {*ENVELOPE, *names}
    assert tuple(JOURNAL_SCHEMA.names[: len(ENVELOPE)]) == ENVELOPE


def test_a_column_names_the_events_that_have_it() -> None:
    for field in JOURNAL_SCHEMA:
        if field.name not in ENVELOPE:
            kinds = {
                kind
                for kind, event_type in EVENT_TYPES.items()
                if field.name in {f.name for f in fields(event_type)}
            }
            assert set((field.metadata or {})[b"kinds"].decode().split()) == kinds, field.name


def test_a_part_is_read_by_plain_parquet_readers(tmp_path: Path) -> None:
    path = tmp_path / "part.parquet"
    written = [
        Record(seq=seq, time_ns=seq, run="r", search="s", body=body)
        for seq, body in enumerate(sample_events())
    ]
    write_part(path, [record_to_json(record) for record in written])
    table = pq.read_table(path)
    assert table.column("kind").to_pylist() == [record.body.kind for record in written]
    assert [reward for reward in table.column("reward").to_pylist() if reward is not None] == [
        0.916
    ]
    (evaluation,) = [text for text in table.column("eval").to_pylist() if text is not None]
    assert '"speedup":2.5' in evaluation


def test_a_key_without_a_column_is_refused_not_dropped(tmp_path: Path) -> None:
    record = record_to_json(Record(seq=0, time_ns=0, run="r", search="s", body=sample_events()[0]))
    with pytest.raises(StoreError, match="no column for surprise"):
        write_part(tmp_path / "part.parquet", [{**record, "surprise": 1}])
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_no_column_holds_is_refused(tmp_path: Path) -> None:
    record = record_to_json(Record(seq=0, time_ns=0, run="r", search="s", body=sample_events()[0]))
    with pytest.raises(StoreError, match="cannot be sealed"):
        write_part(tmp_path / "part.parquet", [{**record, "seed": 2**63}])
    assert list(tmp_path.iterdir()) == []


def test_an_event_from_before_a_field_was_added_is_read_with_its_default(tmp_path: Path) -> None:
    event = next(body for body in sample_events() if isinstance(body, AnswerReceived))
    record = record_to_json(Record(seq=0, time_ns=0, run="r", search="s", body=event))
    older = {key: value for key, value in record.items() if key not in ("finish", "fault")}
    assert record_from_json(older).body == replace(event, finish="", fault="")

    path = tmp_path / "part.parquet"
    write_part(path, [older])
    table = pq.read_table(path).drop_columns(["finish", "fault"])
    pq.write_table(table, path)
    (read,) = read_part(path)
    assert read.body == replace(event, finish="", fault="")
