"""Parquet shards of an export: `data/<split>-00000.parquet`, a bounded number of rows in memory.

The names are those that `datasets.load_dataset(folder)` finds by itself.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kopt.data.atomic import make_folder, store_error
from kopt.data.corpus.splits import Split
from kopt.errors import StoreError

GROUP_ROWS = 512
"""Rows of a row group: what a reader decodes at once, and what a writer holds twice over."""
GROUP_CHARACTERS = 48_000_000
"""Of the texts that a writer holds: long rows make smaller groups."""
SHARD_ROWS = 50_000
"""Rows of a file."""
DICTIONARY_BYTES = 8 << 20
"""Of a column of a row group: prompts repeat, and are stored once while they fit."""
LEVEL = 1
"""Of zstd: 3 makes files half a percent smaller, and takes longer."""


class ShardWriter:
    """Writes rows of one schema, by split. To be used as a context manager."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        """Take the folder of the files; it is made with the first row.

        Args:
            folder: such as `out/data`.
            schema: of the rows.
        """
        self.rows: Counter[Split] = Counter()
        self._folder = folder
        self._schema = schema
        self._held: dict[Split, list[dict[str, Any]]] = {}
        self._held_characters: Counter[Split] = Counter()
        self._files: dict[Split, pq.ParquetWriter] = {}
        self._in_file: Counter[Split] = Counter()
        self._shards: Counter[Split] = Counter()
        # Compression leaves the interpreter to whoever makes the next rows. One group at most is
        # being written: memory is bounded, and groups keep their order.
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="kopt-shard")
        self._writing: Future[None] | None = None

    def add(self, split: Split, row: dict[str, Any], *, characters: int) -> None:
        """Add a row.

        Args:
            split: that it is of.
            row: every column of the schema.
            characters: of its texts, about.

        Raises:
            StoreError: a file cannot be written, or a value does not fit its column.
        """
        held = self._held.setdefault(split, [])
        held.append(row)
        self._held_characters[split] += characters
        if len(held) >= GROUP_ROWS or self._held_characters[split] >= GROUP_CHARACTERS:
            self._flush(split)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                for split in list(self._held):
                    self._flush(split)
                self._finish()
        finally:
            self._writer.shutdown()
            for file in self._files.values():
                file.close()

    def _flush(self, split: Split) -> None:
        held = self._held.pop(split, [])
        self._held_characters[split] = 0
        if not held:
            return
        self._finish()
        self._writing = self._writer.submit(self._write, split, held)
        self.rows[split] += len(held)

    def _finish(self) -> None:
        """Wait for the row group that is being written.

        Raises:
            StoreError: it could not be.
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(self, split: Split, held: list[dict[str, Any]]) -> None:
        try:
            # Twice as fast as Table.from_pylist, which looks at every value once more.
            columns = [
                pa.array([row[field.name] for row in held], type=field.type)
                for field in self._schema
            ]
            table = pa.Table.from_arrays(columns, schema=self._schema)
            file = self._files.get(split) or self._open(split)
            file.write_table(table, row_group_size=GROUP_ROWS)
        except OSError as error:
            raise store_error(self._folder, error) from error
        except (pa.ArrowException, KeyError, OverflowError, TypeError, ValueError) as error:
            raise StoreError(str(self._folder), f"a row cannot be written: {error}") from error
        self._in_file[split] += len(held)
        if self._in_file[split] >= SHARD_ROWS:
            self._files.pop(split).close()
            self._in_file[split] = 0

    def _open(self, split: Split) -> pq.ParquetWriter:
        make_folder(self._folder)
        path = self._folder / f"{split}-{self._shards[split]:05d}.parquet"
        self._shards[split] += 1
        self._files[split] = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            compression_level=LEVEL,
            dictionary_pagesize_limit=DICTIONARY_BYTES,
        )
        return self._files[split]
