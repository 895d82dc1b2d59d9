"""The table within Nsight Compute's CSV output, among log lines and what the program printed."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from kopt.tools.collect.ncu_names import refusal
from kopt.tools.collect.unreadable import MAX_LAUNCHES, Remarks, UnreadableProfile, bounded

SOURCE = "ncu"
FIRST_COLUMN = "ID"
KERNEL_NAME = "Kernel Name"
MAX_ROWS = 64 * MAX_LAUNCHES
"""Of a details page: metrics and rules of every launch."""

_REASONS: tuple[tuple[str, str], ...] = (
    (
        "ERR_NVGPUCTRPERM",
        "no permission to read GPU counters: run as root, or lift the driver's restriction "
        "(NVreg_RestrictProfilingToAdminUsers=0)",
    ),
    ("LibraryNotLoaded", "the profiler cannot start in this sandbox (driver library not loaded)"),
    ("No kernels were profiled", "no kernel ran in the profiled range"),
    ("The application returned an error code", "the profiled program failed"),
)
"""Part of a log line to what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NcuTable:
    """Header and rows; every row has a cell for each column."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    """Of each column, from the row below the header; empty where the page has none."""
    rows: tuple[tuple[str, ...], ...]


def read_table(text: str, *, remarks: Remarks) -> NcuTable:
    """Return the table of an output; lines before and among its rows are passed over.

    Args:
        text: what ncu printed with `--csv`.
        remarks: gets a line for each kind of row that was dropped.

    Raises:
        UnreadableProfile: there is no table; the text says what ncu itself said.
    """
    lines = bounded(text, source=SOURCE).splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        raise UnreadableProfile(SOURCE, _why_no_table(lines))
    columns: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    for row in _cells(lines[start:], remarks):
        if not columns:
            columns = tuple(row)
            if KERNEL_NAME not in columns:
                raise UnreadableProfile(
                    SOURCE, f"expected a column {KERNEL_NAME!r}, found {len(columns)} others"
                )
            continue
        if len(row) != len(columns):
            remarks.note(f"a row of {len(row)} cells where {len(columns)} are columns was dropped")
        elif not row[0] and not rows and not units:
            units = tuple(row)
        elif not row[0].isdigit():
            remarks.note("a row without a launch's number was dropped")
        else:
            rows.append(tuple(row))
    if not rows:
        raise UnreadableProfile(SOURCE, f"the table has no launches; {_why_no_table(lines)}")
    return NcuTable(columns=columns, units=units or ("",) * len(columns), rows=tuple(rows))


def _cells(lines: list[str], remarks: Remarks) -> Iterator[list[str]]:
    """The rows as cells. Lines of the log and of the program end rows and are no part of any."""
    table = (line for line in lines if not line.startswith("==") and line.strip())
    rows = csv.reader(table, strict=True)
    for _ in range(MAX_ROWS):
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            remarks.note(f"the table ends in the middle of a row ({error})")
    remarks.note(f"only the first {MAX_ROWS} rows were read")


def _is_header(line: str) -> bool:
    return line.lstrip("\ufeff").startswith((f'"{FIRST_COLUMN}",', f"{FIRST_COLUMN},"))


def _why_no_table(lines: list[str]) -> str:
    refused = next(filter(None, map(refusal, lines[:10_000])), None)
    if refused is not None:
        return refused
    for line, (mark, meaning) in itertools.product(lines[:10_000], _REASONS):
        if mark in line:
            return meaning
    errors = [line.strip() for line in lines if line.startswith("==ERROR==")]
    if errors:
        return errors[0][:300]
    first = next((line.strip() for line in lines if line.strip()), "")
    return f'expected a table that begins with "{FIRST_COLUMN}", found {first[:80]!r}'
