"""KernelBench from its data set: the Parquet files of a folder, or of the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kopt.data.problems.edition import Edition, Entry, edition_of
from kopt.data.problems.file_source import check_length
from kopt.data.problems.hub import DATASET_ID, dataset_snapshot
from kopt.data.problems.revision import folder_revision
from kopt.errors import ConfigError

COLUMNS = ("code", "level", "problem_id")
"""Those that are read; `name` says nothing that the id does not."""
LFS_POINTER = b"version https://git-lfs"
FALLBACKS = {(DATASET_ID, "v0.1"): "main"}
"""Revision to the one that stands for it where the hub has none of that name. The project's README
(2026-03-05): the data set "is updated to v0.1"; that is its `main`."""


def open_dataset(dataset: str, *, revision: str | None) -> Edition:
    """Return the edition of a data set.

    Args:
        dataset: a folder, or an id on the hub (`owner/name`).
        revision: of the hub's; None is its `main`.

    Raises:
        ConfigError: there is no such folder or data set, the hub cannot be reached and nothing of
            it is cached, or its files are not as expected.
    """
    folder = Path(dataset).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise ConfigError(
                f"problems.kernelbench.revision={revision} cannot be told from the files of "
                f"{dataset}; leave it out, or set problems.kernelbench.dataset={DATASET_ID}"
            )
        return _read(folder, revision=None)
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", dataset):
        raise ConfigError(
            f"problems.kernelbench.dataset={dataset} is no folder (looked for in {Path.cwd()}) "
            f"and no id on the hub, such as {DATASET_ID}"
        )
    snapshot = dataset_snapshot(
        dataset, revision or "main", fallback=FALLBACKS.get((dataset, revision or ""))
    )
    plain = revision is None or snapshot.name.startswith(revision)
    label = f"hub:{snapshot.name}"
    return _read(snapshot, revision=label if plain else f"{revision} {label}")


def _read(folder: Path, *, revision: str | None) -> Edition:
    files = sorted(
        path
        for path in folder.rglob("*.parquet")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not files:
        raise ConfigError(f"{folder} holds no Parquet file; expected those of {DATASET_ID}")
    return edition_of(
        (entry for path in files for entry in _entries(path)),
        revision=revision or folder_revision(folder, files=files, under="."),
        where=str(folder),
    )


def _entries(path: Path) -> Iterator[Entry]:
    """One entry for each row of a file."""
    for place, row in enumerate(_rows(path)):
        where = f"row {place} of {path}"
        code, level, number = (row[column] for column in COLUMNS)
        if not isinstance(code, str) or not isinstance(level, int) or not isinstance(number, int):
            kinds = ", ".join(f"{column} {type(row[column]).__name__}" for column in COLUMNS)
            raise ConfigError(f"{where}: expected text, number and number, found {kinds}")
        check_length(len(code.encode("utf-8", errors="replace")), where=where)
        yield Entry(level=level, number=number, where=where, read=partial(str, code))


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            absent = [column for column in COLUMNS if column not in file.schema_arrow.names]
            if absent:
                raise ConfigError(
                    f"{path} has no column {', '.join(absent)}; it has "
                    f"{', '.join(file.schema_arrow.names)}"
                )
            return file.read(columns=list(COLUMNS)).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"{path} is no readable Parquet file: {_why(path, error)}") from None


def _why(path: Path, error: Exception) -> str:
    try:
        with path.open("rb") as file:
            if file.read(len(LFS_POINTER)) == LFS_POINTER:
                return "it is a pointer of git LFS; run `git lfs pull`"
    except OSError:
        pass  # what pyarrow said of it will do
    return str(error).strip().splitlines()[0]
