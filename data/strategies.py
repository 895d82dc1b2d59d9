"""The strategy tracker's file: what searches of many runs tried, and how often it paid.

Runs share it. It is replaced whole under a lock, so a reader sees one state or the next. Each
search contributes under a key of its own: one that ends a second time (it was resumed or extended)
takes its earlier contribution's place. It stays small: of more than MAX_SEARCHES contributions the
oldest are added up into one, and of more than MAX_TALLIES tallies there the least tried are let go.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from kopt.data.atomic import make_folder, store_error, write_bytes
from kopt.errors import StoreError
from kopt.memory.tracker import Tally, summed

SCHEMA = 1
MAX_SEARCHES = 1_000
"""Contributions kept one by one: as far back as a search may still be resumed."""
MAX_TALLIES = 2_000
"""Of all the older ones together."""
LOCK_WAIT_S = 10.0
"""A writer holds the lock for some milliseconds; one that waits longer says so."""
LOCK_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one search tried."""

    key: str
    """Of the run and the search."""
    tallies: tuple[Tally, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    schema: int
    older: tuple[Tally, ...]
    searches: tuple[Contribution, ...]


_CONTENT = TypeAdapter(_Content)
_EMPTY = _Content(schema=SCHEMA, older=(), searches=())


class StrategyFile:
    """One file of the tracker. Many processes may use it at once."""

    def __init__(self, path: Path) -> None:
        """Take the path; nothing is there before the first search ends."""
        self.path = path

    def read(self) -> tuple[Tally, ...]:
        """Return a tally for each technique, family and class, over all searches.

        Raises:
            StoreError: the file cannot be read, or is none of a tracker's.
        """
        content = self._content()
        every = [*content.older, *(each for one in content.searches for each in one.tallies)]
        return summed(every)

    def record(self, key: str, tallies: Sequence[Tally]) -> None:
        """Add what a search tried, in place of what it added before.

        Args:
            key: of the run and the search.
            tallies: of the search; none take its contribution back.

        Raises:
            StoreError: the file cannot be read or written, or its lock is held for too long.
        """
        make_folder(self.path.parent)
        with self._locked():
            content = self._content()
            searches = [each for each in content.searches if each.key != key]
            if tallies:
                searches.append(Contribution(key=key, tallies=tuple(tallies)))
            aged, kept = searches[:-MAX_SEARCHES], searches[-MAX_SEARCHES:]
            older = content.older
            if aged:
                older = summed([*older, *(each for one in aged for each in one.tallies)])
                older = tuple(sorted(older, key=lambda each: -each.tried)[:MAX_TALLIES])
            new = _Content(schema=SCHEMA, older=older, searches=tuple(kept))
            text = json.dumps(asdict(new), ensure_ascii=False, separators=(",", ":"))
            write_bytes(self.path, text.encode())

    def _content(self) -> _Content:
        try:
            content = _CONTENT.validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return _EMPTY
        except OSError as error:
            raise store_error(self.path, error) from error
        except ValidationError as error:
            found = error.errors()[0]
            where = ".".join(map(str, found["loc"])) or "its text"
            raise StoreError(
                str(self.path),
                f"expected a strategy tracker's file, found another ({where}: {found['msg']}); "
                "name a new path, or move this file away",
            ) from None
        if content.schema != SCHEMA:
            raise StoreError(
                str(self.path),
                f"expected a strategy tracker's file of schema {SCHEMA}, found {content.schema}; "
                "use the kopt that wrote it, or name a new path",
            )
        return content

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = self.path.with_name(f".{self.path.name}.lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise store_error(path, error) from error
        try:
            deadline_s = time.monotonic() + LOCK_WAIT_S
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline_s:
                        raise StoreError(
                            str(path), f"another process held it for {LOCK_WAIT_S:g} s"
                        ) from None
                    time.sleep(LOCK_PAUSE_S)
                except OSError as error:
                    raise store_error(path, error) from error
            yield
        finally:
            os.close(descriptor)
