"""Shards: groups keep their order, and a row that does not fit ends the export."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kopt.data.exports import shard_writer
from kopt.data.exports.shard_writer import ShardWriter
from kopt.errors import StoreError

SCHEMA = pa.schema([pa.field("number", pa.int64()), pa.field("text", pa.string())])


def test_rows_keep_their_order_over_groups_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_writer, "GROUP_ROWS", 3)
    monkeypatch.setattr(shard_writer, "SHARD_ROWS", 6)
    with ShardWriter(tmp_path, SCHEMA) as writer:
        for number in range(20):
            split = "test" if number % 5 == 0 else "train"
            writer.add(split, {"number": number, "text": "x"}, characters=1)
    assert writer.rows == {"train": 16, "test": 4}
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "test-00000.parquet",
        "train-00000.parquet",
        "train-00001.parquet",
        "train-00002.parquet",
    ]
    found = [n for name in names[1:] for n in pq.read_table(tmp_path / name)["number"].to_pylist()]
    assert found == [number for number in range(20) if number % 5]


def test_a_row_that_does_not_fit_is_told_by_name(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match="a row cannot be written"),
        ShardWriter(tmp_path, SCHEMA) as writer,
    ):
        writer.add("train", {"number": "no number", "text": "x"}, characters=1)


def test_long_rows_make_smaller_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "GROUP_CHARACTERS", 10)
    with ShardWriter(tmp_path, SCHEMA) as writer:
        for number in range(4):
            writer.add("train", {"number": number, "text": "x" * 5}, characters=5)
    assert pq.ParquetFile(tmp_path / "train-00000.parquet").num_row_groups == 2
