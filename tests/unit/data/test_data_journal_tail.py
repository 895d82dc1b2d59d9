"""The journal's tail: each event once, whatever its writer does between two looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopt.data.journal import Journal
from kopt.data.journal_files import open_path
from kopt.data.journal_tail import JournalTail
from kopt.errors import StoreError
from kopt.events import RunEnded
from kopt.testing.fakes import ManualClock


def journal(folder: Path, *, seal_lines: int = 3) -> Journal:
    return Journal(folder, run="r", clock=ManualClock(), seal_lines=seal_lines)


def seen(tail: JournalTail) -> list[int]:
    return [record.seq for record in tail.read()]


def test_each_event_is_given_once_while_files_are_sealed(tmp_path: Path):
    tail = JournalTail(tmp_path)
    assert seen(tail) == []  # no journal yet
    with journal(tmp_path) as writer:
        for looks in (1, 1, 2, 3, 1, 7):
            before = writer.next_seq
            for _ in range(looks):
                writer.append("", RunEnded(failed=0))
            assert seen(tail) == list(range(before, writer.next_seq))
            assert seen(tail) == []
    assert seen(tail) == []  # closing sealed the last file
    assert tail.next_seq == 15
    assert seen(JournalTail(tmp_path)) == list(range(15))


def test_a_line_that_is_being_written_is_given_once_it_is_whole(tmp_path: Path):
    with journal(tmp_path) as writer:
        writer.append("", RunEnded(failed=0))
        tail = JournalTail(tmp_path)
        assert seen(tail) == [0]
        writer.append("", RunEnded(failed=0))
        path = open_path(tmp_path / "journal", 1)
        whole = path.read_bytes()
        path.write_bytes(whole[:-5])
        assert seen(tail) == []
        path.write_bytes(whole)
        assert seen(tail) == [1]


def test_a_writer_that_died_and_goes_on_is_followed(tmp_path: Path):
    tail = JournalTail(tmp_path)
    with journal(tmp_path) as writer:
        writer.append("", RunEnded(failed=0))
        assert seen(tail) == [0]
    with journal(tmp_path) as writer:
        writer.append("", RunEnded(failed=0))
        assert seen(tail) == [1]


def test_a_record_of_another_version_is_one_line(tmp_path: Path):
    with journal(tmp_path) as writer:
        writer.append("", RunEnded(failed=0))
        path = open_path(tmp_path / "journal", 1)
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 99}) + "\n")
        with pytest.raises(StoreError, match="expected journal schema 1, found 99"):
            seen(JournalTail(tmp_path))


def test_a_missing_part_is_said(tmp_path: Path):
    with journal(tmp_path) as writer:
        for _ in range(7):
            writer.append("", RunEnded(failed=0))
    (tmp_path / "journal" / "part-000001.parquet").unlink()
    with pytest.raises(StoreError, match="missing"):
        seen(JournalTail(tmp_path))
