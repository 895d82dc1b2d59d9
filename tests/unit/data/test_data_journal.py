"""The journal: one write an event, sealed by rename, one driver at a time, whatever dies when."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
from pathlib import Path

import pytest

from kopt.data.journal import Journal, read_events
from kopt.data.schema import JOURNAL_SCHEMA
from kopt.errors import StoreError
from kopt.events import RunEnded, Told
from kopt.testing.fakes import ManualClock

TOLD = Told(expansion=0, index=0, node=1, reward=0.5)


def journal(folder: Path, *, seal_lines: int = 1_000) -> Journal:
    return Journal(folder, run="run", clock=ManualClock(), seal_lines=seal_lines)


def abandon(sink: Journal) -> None:
    """Leave a journal as a killed driver does: its lock is gone, nothing is sealed."""
    sink._lock.release()
    sink._close_file()


def seqs(folder: Path) -> list[int]:
    return [record.seq for record in read_events(folder)]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "journal").iterdir())


def test_a_line_has_the_envelope_and_the_event(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    sink.append("softmax/mcts/0", TOLD)
    (line,) = (tmp_path / "journal/open-000001.jsonl").read_bytes().splitlines()
    assert json.loads(line) == {
        "schema": 1,
        "seq": 0,
        "time_ns": 1_700_000_000_000_000_000,
        "run": "run",
        "search": "softmax/mcts/0",
        "kind": "told",
        "expansion": 0,
        "index": 0,
        "node": 1,
        "reward": 0.5,
        "energy_reduction": None,
    }


def test_a_reopened_journal_goes_on_counting(tmp_path: Path) -> None:
    for expected in (0, 1, 2):
        with journal(tmp_path) as sink:
            assert sink.next_seq == expected
            assert sink.append("a", TOLD) == expected
    assert files(tmp_path) == ["part-000001.parquet", "part-000002.parquet", "part-000003.parquet"]
    assert seqs(tmp_path) == [0, 1, 2]


def test_a_reopened_open_file_goes_on_counting(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    abandon(sink)
    sink = journal(tmp_path)
    assert sink.append("a", TOLD) == 1
    assert files(tmp_path) == ["open-000001.jsonl"]
    assert seqs(tmp_path) == [0, 1]


@pytest.mark.parametrize("torn", [b"{", b'{"schema":1,"seq":2', b'{"schema":1,"seq":2}', b"\0\0"])
def test_a_torn_last_line_is_no_record_and_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    sink.append("a", TOLD)
    abandon(sink)
    path = tmp_path / "journal/open-000001.jsonl"
    with path.open("ab") as lines:
        lines.write(torn)
    assert seqs(tmp_path) == [0, 1]
    sink = journal(tmp_path)
    assert sink.append("a", TOLD) == 2
    assert seqs(tmp_path) == [0, 1, 2]


def test_a_torn_first_line_of_a_later_file_goes_on_from_the_part_before(tmp_path: Path) -> None:
    with journal(tmp_path) as sink:
        sink.append("a", TOLD)
    (tmp_path / "journal/open-000002.jsonl").write_bytes(b'{"schema":1,"se')
    assert seqs(tmp_path) == [0]
    sink = journal(tmp_path)
    assert sink.append("a", TOLD) == 1
    assert seqs(tmp_path) == [0, 1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{oops\n", "not a journal record"),
        (b"[]\n", "expected a JSON object, found list"),
        (b'{"schema":1}\n', "lacks seq, time_ns, run, search, kind"),
    ],
)
def test_a_damaged_line_is_named_by_file_and_line(tmp_path: Path, line: bytes, words: str) -> None:
    sink = journal(tmp_path)
    for _ in range(3):
        sink.append("a", TOLD)
    path = tmp_path / "journal/open-000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + line + lines[2])
    with pytest.raises(StoreError, match=r"open-000001\.jsonl:2: .*" + words):
        seqs(tmp_path)


def test_a_missing_line_is_named(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    for _ in range(3):
        sink.append("a", TOLD)
    path = tmp_path / "journal/open-000001.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(StoreError, match=r"open-000001\.jsonl:2: expected seq 1, found 2"):
        seqs(tmp_path)


def test_a_record_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    path = tmp_path / "journal/open-000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    with pytest.raises(StoreError, match="expected journal schema 1, found 2"):
        seqs(tmp_path)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    with journal(tmp_path, seal_lines=2) as sink:
        for _ in range(6):
            sink.append("a", TOLD)
    (tmp_path / "journal/part-000002.parquet").unlink()
    with pytest.raises(StoreError, match=r"part-000002\.parquet: .*missing"):
        seqs(tmp_path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    with journal(tmp_path) as sink:
        sink.append("a", TOLD)
    part = tmp_path / "journal/part-000001.parquet"
    part.write_bytes(part.read_bytes()[:-8])
    with pytest.raises(StoreError, match=r"part-000001\.parquet: not a journal part"):
        seqs(tmp_path)
    with pytest.raises(StoreError, match=r"part-000001\.parquet: not a journal part"):
        journal(tmp_path)


def test_a_folder_without_a_journal_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="expected a run folder, found no journal/ in it"):
        list(read_events(tmp_path))


def test_an_empty_journal_has_no_events(tmp_path: Path) -> None:
    with journal(tmp_path) as sink:
        assert sink.next_seq == 0
    assert seqs(tmp_path) == []
    assert files(tmp_path) == []


def test_every_so_many_lines_become_a_part(tmp_path: Path) -> None:
    sink = journal(tmp_path, seal_lines=3)
    for _ in range(7):
        sink.append("a", TOLD)
    assert files(tmp_path) == ["open-000003.jsonl", "part-000001.parquet", "part-000002.parquet"]
    assert seqs(tmp_path) == list(range(7))


def test_a_writer_that_died_before_it_removed_the_lines_duplicates_nothing(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    for _ in range(3):
        sink.append("a", TOLD)
    lines = tmp_path / "journal/open-000001.jsonl"
    kept = lines.read_bytes()
    sink.close()
    lines.write_bytes(kept)  # both exist now, as after a death between rename and removal
    assert seqs(tmp_path) == [0, 1, 2]
    sink = journal(tmp_path)
    assert not lines.exists()
    assert sink.append("a", TOLD) == 3
    assert seqs(tmp_path) == [0, 1, 2, 3]


def test_a_writer_that_died_before_the_rename_loses_nothing(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    abandon(sink)
    leftover = tmp_path / "journal/.part-000001.parquet.77.tmp"
    leftover.write_bytes(b"PAR1 half a part")
    assert seqs(tmp_path) == [0]
    sink = journal(tmp_path)
    assert not leftover.exists()
    assert sink.append("a", TOLD) == 1


def test_a_part_that_cannot_be_written_leaves_the_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sink = journal(tmp_path, seal_lines=2)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", full)
        assert [sink.append("a", TOLD) for _ in range(3)] == [0, 1, 2]
    assert "stays unsealed" in caplog.text
    assert files(tmp_path) == ["open-000001.jsonl"]
    assert sink.append("a", TOLD) == 3  # two lines later it is tried again
    assert files(tmp_path) == ["part-000001.parquet"]
    assert seqs(tmp_path) == [0, 1, 2, 3]


def test_a_reader_follows_while_the_writer_seals(tmp_path: Path) -> None:
    sink = journal(tmp_path, seal_lines=3)
    for _ in range(2):
        sink.append("a", TOLD)
    reader = read_events(tmp_path)
    found = [next(reader).seq, next(reader).seq]
    for _ in range(5):  # seals what the reader has open, and the file after it
        sink.append("a", TOLD)
    found += [record.seq for record in reader]
    assert found == list(range(7))


def test_a_second_driver_is_refused_and_told_who_has_the_run(tmp_path: Path) -> None:
    first = journal(tmp_path)
    owner = f"pid {os.getpid()} on {socket.gethostname()}"
    with pytest.raises(StoreError, match="another driver runs here") as refused:
        journal(tmp_path)
    assert owner in str(refused.value)
    first.close()
    journal(tmp_path).close()


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    sink.close()
    sink.close()
    with pytest.raises(StoreError, match="closed"):
        sink.append("", RunEnded(failed=0))


def test_a_partial_write_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr("os.write", lambda descriptor, line: write(descriptor, line[:10]))
        with pytest.raises(StoreError, match="no space left"):
            sink.append("a", TOLD)
    assert (tmp_path / "journal/open-000001.jsonl").read_bytes().count(b"\n") == 1
    assert sink.append("a", TOLD) == 1
    assert seqs(tmp_path) == [0, 1]


def test_nothing_follows_a_partial_line_that_cannot_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = journal(tmp_path)
    sink.append("a", TOLD)
    write = os.write

    def fails(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.write", lambda descriptor, line: write(descriptor, line[:10]))
        patched.setattr("os.ftruncate", fails)
        with pytest.raises(StoreError):
            sink.append("a", TOLD)
    with pytest.raises(StoreError, match="a partial line could not be removed"):
        sink.append("a", TOLD)
    sink.close()
    with journal(tmp_path) as sink:
        assert sink.append("a", TOLD) == 1
    assert seqs(tmp_path) == [0, 1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_line(tmp_path: Path) -> None:
    sink = journal(tmp_path)
    (tmp_path / "journal/open-000001.jsonl").symlink_to("/dev/full")
    with pytest.raises(StoreError, match=r"open-000001\.jsonl: No space left.*kopt resume") as full:
        sink.append("a", TOLD)
    assert "\n" not in str(full.value)


def test_a_hundred_thousand_events_are_sealed_and_read_back(tmp_path: Path) -> None:
    with journal(tmp_path, seal_lines=5_000) as sink:
        for _ in range(100_000):
            sink.append("a", TOLD)
    assert len(files(tmp_path)) == 20
    assert sum(1 for _ in read_events(tmp_path)) == 100_000


def test_a_run_folder_can_be_moved(tmp_path: Path) -> None:
    with journal(tmp_path / "a", seal_lines=2) as sink:
        for _ in range(3):
            sink.append("a", TOLD)
    shutil.move(tmp_path / "a", tmp_path / "b")
    assert seqs(tmp_path / "b") == [0, 1, 2]


def test_a_column_says_which_events_have_it() -> None:
    kinds = (JOURNAL_SCHEMA.field("reward").metadata or {})[b"kinds"]
    assert kinds == b"told"
