"""Every table of every export is read alike by pyarrow, DuckDB, Polars and `datasets`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import datasets
import duckdb
import polars
import pyarrow.parquet as pq
import pytest

from kopt.data.exports.choice import Choice
from kopt.data.exports.export import Format, export
from kopt.data.rundir import RunDir

Make = Callable[..., RunDir]
FORMATS = tuple(name for name in get_args(Format) if name != "guidelines")


@pytest.fixture(params=FORMATS)
def tables(request: pytest.FixtureRequest, make_run: Make, tmp_path: Path) -> list[Path]:
    """The folders of an export's tables."""
    out = tmp_path / "out"
    export([make_run()], out, format=request.param, choice=Choice(), settings={})
    found = sorted({path.parent for path in out.rglob("*.parquet")})
    assert found
    return found


def plain(table: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(table).to_pylist()
    return rows


def test_duckdb_reads_what_pyarrow_does(tables: list[Path]) -> None:
    for table in tables:
        with duckdb.connect() as connection:
            found = connection.execute(f"FROM read_parquet('{table}/*.parquet')")
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        assert rows == plain(table)


def test_polars_reads_what_pyarrow_does(tables: list[Path]) -> None:
    for table in tables:
        rows = polars.read_parquet(table / "*.parquet").to_dicts()
        lazily = polars.scan_parquet(table / "*.parquet").select(polars.len()).collect().item()
        assert rows == plain(table)
        assert lazily == len(rows)


def test_datasets_reads_what_pyarrow_does(tables: list[Path], tmp_path: Path) -> None:
    for table in tables:
        found = datasets.load_dataset(
            str(table.parent), table.name, cache_dir=str(tmp_path / "cache")
        )
        assert found["train"].to_list() == plain(table)
