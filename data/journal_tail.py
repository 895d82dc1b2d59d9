"""The journal's tail: a run's events as they are written, each read once.

For whoever looks on while a driver writes: each look reads the bytes that came since the last one,
and a file that was sealed meanwhile is read again only for what it gained before it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kopt.data.atomic import store_error
from kopt.data.journal_files import JOURNAL_FOLDER, file_numbers, open_path, part_path
from kopt.data.parts import last_seq, read_part
from kopt.data.record import Record, record_from_line
from kopt.errors import StoreError


class JournalTail:
    """Reads on in a run's journal. Never writes; for one reader."""

    def __init__(self, run_folder: Path | str) -> None:
        """Begin at the first event.

        Args:
            run_folder: the folder that holds `journal/`, or will once its driver has begun.
        """
        self._folder = Path(run_folder) / JOURNAL_FOLDER
        self._number = 1
        self._offset = 0
        """Bytes read of the open file of that number."""
        self._next_seq = 0

    @property
    def next_seq(self) -> int:
        """Events read so far."""
        return self._next_seq

    def read(self) -> Iterator[Record]:
        """Give the events that are new, in order; what is given counts as read.

        Raises:
            StoreError: a record is damaged, missing, or of another version; the text names the
                file and its line or row.
        """
        while True:
            sealed = part_path(self._folder, self._number)
            if not sealed.exists():
                yield from self._read_open()
                if not sealed.exists():  # else it was sealed in between, and may have grown before
                    self._check_not_last()
                    return
            if last_seq(sealed) >= self._next_seq:
                for row, record in enumerate(read_part(sealed), start=1):
                    if record.seq >= self._next_seq:
                        yield self._taken(record, where=f"{sealed} row {row}")
            self._number += 1
            self._offset = 0

    def _read_open(self) -> Iterator[Record]:
        path = open_path(self._folder, self._number)
        try:
            with path.open("rb") as lines:
                lines.seek(self._offset)
                for line in lines:
                    if not line.endswith(b"\n"):
                        return  # it is being written
                    where = f"{path} byte {self._offset}"
                    try:
                        record = record_from_line(line)
                    except ValueError as error:
                        raise StoreError(where, f"not a journal record: {error}") from error
                    self._offset += len(line)
                    yield self._taken(record, where=where)
        except FileNotFoundError:
            return  # nothing was written yet, or it was sealed a moment ago
        except OSError as error:
            raise store_error(path, error) from error

    def _taken(self, record: Record, *, where: str) -> Record:
        if record.seq != self._next_seq:
            raise StoreError(where, f"expected seq {self._next_seq}, found {record.seq}")
        self._next_seq += 1
        return record

    def _check_not_last(self) -> None:
        """Find that files follow the one that is neither open nor sealed."""
        if not self._folder.is_dir():
            return
        numbers = file_numbers(self._folder)
        if numbers and numbers[-1] > self._number and self._number not in numbers:
            why = "this part of the journal is missing, and later ones exist"
            raise StoreError(str(part_path(self._folder, self._number)), why)
