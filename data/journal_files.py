"""Names of the journal's files, and reading them: sealed parts, then the open file.

`journal/part-000001.parquet` … are sealed; `journal/open-00000N.jsonl`, numbered after them, is
being written. Where both of one number exist, a writer died between its two steps of sealing and
the part counts. A last line without its newline was never written whole and is no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kopt.data.atomic import store_error
from kopt.data.parts import read_part
from kopt.data.record import Record, record_from_line
from kopt.errors import StoreError

JOURNAL_FOLDER = "journal"
_FILE = re.compile(r"(?:open-(\d{6,})\.jsonl|part-(\d{6,})\.parquet)")


def open_path(folder: Path, number: int) -> Path:
    """Return the path of an open file; `folder` is the journal's."""
    return folder / f"open-{number:06d}.jsonl"


def part_path(folder: Path, number: int) -> Path:
    """Return the path of a sealed part; `folder` is the journal's."""
    return folder / f"part-{number:06d}.parquet"


def file_numbers(folder: Path) -> list[int]:
    """Return the numbers of the journal's files, each once, in order.

    Raises:
        StoreError: the folder cannot be listed.
    """
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError as error:
        raise store_error(folder, error) from error
    matches = (_FILE.fullmatch(name) for name in names)
    return sorted({int(match[1] or match[2]) for match in matches if match})


def read_events(run_folder: Path | str) -> Iterator[Record]:
    """Give every record of a run, in order, in constant memory; a driver may be writing to it.

    Args:
        run_folder: the folder that holds `journal/`.

    Raises:
        StoreError: there is no journal, a record is damaged or missing; the text names the file
            and its line or row.
    """
    folder = Path(run_folder) / JOURNAL_FOLDER
    if not folder.is_dir():
        raise StoreError(str(run_folder), "expected a run folder, found no journal/ in it")
    expected_seq = skipped_seq = 0
    number = 1
    while True:
        sealed = part_path(folder, number).exists()
        for where, record in _read_file(folder, number):
            if record.seq < skipped_seq:
                continue
            if record.seq != expected_seq:
                raise StoreError(where, f"expected seq {expected_seq}, found {record.seq}")
            yield record
            expected_seq += 1
        if file_numbers(folder)[-1:] <= [number]:
            return
        # A file that was open is sealed by now, and may have grown since: read on in the part.
        skipped_seq = 0 if sealed else expected_seq
        number += sealed


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Give the whole lines of an open file with their numbers, from 1, newline included.

    Raises:
        OSError: the file cannot be opened or read.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.endswith(b"\n"):
                yield number, line


def _read_file(folder: Path, number: int) -> Iterator[tuple[str, Record]]:
    part, path = part_path(folder, number), open_path(folder, number)
    if not part.exists():
        try:
            yield from _read_open(path)
        except FileNotFoundError:
            if number == 1 and not file_numbers(folder):
                return  # nothing was ever written
            if not part.exists():
                why = "this part of the journal is missing, and later ones exist"
                raise StoreError(str(part), why) from None
        except OSError as error:
            raise store_error(path, error) from error
        else:
            return
    for row, record in enumerate(read_part(part), start=1):
        yield f"{part} row {row}", record


def _read_open(path: Path) -> Iterator[tuple[str, Record]]:
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        try:
            record = record_from_line(line)
        except ValueError as error:
            raise StoreError(where, f"not a journal record: {error}") from error
        yield where, record
