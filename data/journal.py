"""The journal: the run's truth, appended one line an event and sealed into Parquet parts.

Invariants, whatever dies when:

* `append` makes one write to a file opened for appending, so that a killed process leaves at most
  one unfinished last line, which no reader counts and the next writer cuts off.
* Sequence numbers have no gaps and never repeat.
* A part takes its lines' place by rename before they are removed: at no moment are they in neither.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from types import TracebackType

from kopt.data.artefacts import Artefacts
from kopt.data.atomic import TEMPORARY_SUFFIX, make_folder, store_error
from kopt.data.journal_files import (
    JOURNAL_FOLDER,
    file_numbers,
    open_path,
    part_path,
    read_events,
    read_lines,
)
from kopt.data.lock import RunLock
from kopt.data.parts import last_seq, write_part
from kopt.data.record import Record, record_from_line, record_to_line
from kopt.errors import StoreError
from kopt.events import EventBody
from kopt.ports import Clock

__all__ = ["Journal", "read_events"]

SEAL_LINES = 5_000
"""Lines after which the open file is sealed: some megabytes, a tenth of a second to convert."""

log = logging.getLogger(__name__)


class Journal:
    """The EventSink of a run folder. One driver at a time; not for several threads."""

    def __init__(
        self, folder: Path | str, *, run: str, clock: Clock, seal_lines: int = SEAL_LINES
    ) -> None:
        """Open the journal of a run folder, or begin it; go on after its last whole line.

        Args:
            folder: the run folder; `journal/` and `artefacts/` are made in it.
            run: name of the run, for the envelope.
            clock: gives each record's time.
            seal_lines: lines after which the open file becomes a part, >= 1.

        Raises:
            StoreError: another driver writes this run, or the folder cannot be read or written.
        """
        root = Path(folder)
        self._folder = root / JOURNAL_FOLDER
        make_folder(self._folder)
        self._run = run
        self._clock = clock
        self._seal_lines = seal_lines
        self._artefacts = Artefacts(root / "artefacts")
        self._descriptor = -1  # -1: the next line begins a file
        self._unusable: str | None = None
        self._lock = RunLock(root)
        try:
            self._tidy()
            self._number, self._next_seq, self._lines, self._size = self._last_position()
        except BaseException:
            self._lock.release()
            raise
        self._seal_at = max(seal_lines, self._lines + 1)

    @property
    def next_seq(self) -> int:
        """Sequence number of the next event; the number of events so far."""
        return self._next_seq

    def append(self, search: str, body: EventBody) -> int:
        """Write one event and return its sequence number.

        Raises:
            StoreError: it cannot be written (no space), JSON has no form for it (a number that is
                not finite), or the journal is closed. Nothing half-written is left.
        """
        seq = self._next_seq
        record = Record(
            seq=seq, time_ns=self._clock.now_ns(), run=self._run, search=search, body=body
        )
        try:
            line = record_to_line(record)
        except (TypeError, ValueError) as error:
            raise StoreError(str(self._folder), f"{body.kind} event: {error}") from error
        self._write(line)
        self._next_seq += 1
        self._lines += 1
        if self._lines >= self._seal_at:
            self._seal()
        return seq

    def put_text(self, text: str) -> str:
        """Keep a text as an artefact and return its sha256; equal texts are kept once.

        Raises:
            StoreError: it cannot be written.
        """
        return self._artefacts.put(text)

    def get_text(self, sha256: str) -> str:
        """Return the text of an artefact.

        Raises:
            StoreError: there is none of that name, or its bytes do not match it.
        """
        return self._artefacts.get(sha256)

    def close(self) -> None:
        """Seal what is open and let the run folder go; more than once is harmless."""
        if self._unusable is None and self._lines:
            self._seal()
        self._close_file()
        self._unusable = "the journal is closed"
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, line: bytes) -> None:
        path = open_path(self._folder, self._number)
        if self._unusable is not None:
            raise StoreError(str(path), self._unusable)
        try:
            if self._descriptor < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(path, flags, 0o644)
            written = os.write(self._descriptor, line)
        except OSError as error:
            self._cut_back()
            raise store_error(path, error) from error
        if written != len(line):
            self._cut_back()
            raise StoreError(str(path), "no space left; free some, then go on with `kopt resume`")
        self._size += written

    def _cut_back(self) -> None:
        """Take a partial line away; if even that fails, nothing may follow it."""
        if self._descriptor < 0:
            return
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            self._unusable = f"a partial line could not be removed ({error.strerror})"

    def _seal(self) -> None:
        """Make the open file a part. A failure costs nothing: the lines stay, and count."""
        lines, part = open_path(self._folder, self._number), part_path(self._folder, self._number)
        try:
            write_part(part, (json.loads(line) for _, line in read_lines(lines)))
            lines.unlink()
        except (StoreError, OSError, ValueError) as error:
            if not part.exists():
                log.warning("%s stays unsealed: %s", lines, error)
                self._seal_at = self._lines + self._seal_lines
                return
        self._close_file()
        self._number += 1
        self._lines = self._size = 0
        self._seal_at = self._seal_lines

    def _close_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _tidy(self) -> None:
        """Remove what a writer left that died while it sealed."""
        try:
            for leftover in self._folder.glob(f".*{TEMPORARY_SUFFIX}"):
                leftover.unlink(missing_ok=True)
            for number in file_numbers(self._folder):
                if part_path(self._folder, number).exists():
                    open_path(self._folder, number).unlink(missing_ok=True)
        except OSError as error:
            raise store_error(self._folder, error) from error

    def _last_position(self) -> tuple[int, int, int, int]:
        """Return number, next seq, lines and bytes of the file to go on with."""
        numbers = file_numbers(self._folder)
        if not numbers:
            return 1, 0, 0, 0
        number = numbers[-1]
        part, lines_path = part_path(self._folder, number), open_path(self._folder, number)
        if part.exists():
            return number + 1, last_seq(part) + 1, 0, 0
        lines, size, last = _measure(lines_path)
        if last is not None:
            try:
                return number, record_from_line(last).seq + 1, lines, size
            except ValueError as error:
                raise StoreError(
                    f"{lines_path}:{lines}", f"not a journal record: {error}"
                ) from error
        # The file's first line was never finished: the sequence goes on from the part before.
        before = part_path(self._folder, number - 1)
        return number, last_seq(before) + 1 if number > 1 else 0, 0, 0


def _measure(path: Path) -> tuple[int, int, bytes | None]:
    """Cut an unfinished last line off; return lines, bytes and the last line of what is left."""
    lines = size = 0
    last = None
    try:
        for number, line in read_lines(path):
            lines, size, last = number, size + len(line), line
        if path.stat().st_size > size:
            os.truncate(path, size)
    except OSError as error:
        raise store_error(path, error) from error
    return lines, size, last
