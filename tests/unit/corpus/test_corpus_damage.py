"""Runs that are not whole: what is there is taken, what is not is counted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kopt.data.corpus.gathering import gathered
from kopt.data.corpus.losses import Losses
from kopt.data.exports.choice import Choice
from kopt.data.exports.export import export
from kopt.data.journal import Journal
from kopt.data.journal_files import JOURNAL_FOLDER, part_path
from kopt.data.rundir import RunDir
from kopt.testing.fakes import ManualClock

Make = Callable[..., RunDir]


def card_of(run: RunDir, out: Path) -> dict[str, Any]:
    export([run], out, format="corpus", choice=Choice(), settings={})
    return json.loads((out / "card.json").read_text())


def test_a_run_still_going_is_read_as_far_as_it_has_come(make_run: Make, tmp_path: Path) -> None:
    run = make_run(ends=False)
    whole = card_of(run, tmp_path / "whole")
    with Journal(run.path, run="mine", clock=ManualClock()):
        card = card_of(run, tmp_path / "out")
    assert card["rows"] == whole["rows"] == {"data": {"train": 7}}
    assert card["runs"][0]["status"] == "running"
    assert any("still goes on" in line for line in card["warnings"])


def test_a_killed_run_loses_its_unfinished_line_and_no_more(make_run: Make, tmp_path: Path) -> None:
    run = make_run(ends=False)
    journal = run.path / JOURNAL_FOLDER
    (journal / "open-000002.jsonl").write_text('{"schema":1,"seq":99,"ki')
    card = card_of(run, tmp_path / "out")
    assert card["rows"] == {"data": {"train": 7}}
    assert card["lost"] == {"expansion without an answer": 1}


def test_a_corrupt_part_is_counted_and_the_rest_is_taken(make_run: Make, tmp_path: Path) -> None:
    run = make_run(seal_lines=8)
    journal = run.path / JOURNAL_FOLDER
    second = part_path(journal, 2)
    second.write_bytes(second.read_bytes()[:-100])
    card = card_of(run, tmp_path / "out")
    assert card["lost"]["part that cannot be read"] == 1
    assert card["lost"]["missing event"] == 8
    assert card["tried"]["not judged"] >= 1
    assert any("part-000002.parquet" in place for place in card["lost_places"])
    assert "part-000002.parquet" in (tmp_path / "out" / "README.md").read_text()


def test_a_part_of_another_version_is_not_guessed_at(make_run: Make, tmp_path: Path) -> None:
    run = make_run(seal_lines=8)
    path = part_path(run.path / JOURNAL_FOLDER, 2)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"kopt.journal.schema": "9"}), path)
    card = card_of(run, tmp_path / "out")
    assert card["lost"]["part of another version"] == 1
    assert any("expected schema 1, found 9" in place for place in card["lost_places"])


def test_a_part_of_an_early_version_1_lacks_columns_and_is_read(
    make_run: Make, tmp_path: Path
) -> None:
    run = make_run()
    path = part_path(run.path / JOURNAL_FOLDER, 1)
    table = pq.read_table(path)
    early = table.drop_columns(["finish", "trace", "energy_reduction", "is_reference"])
    pq.write_table(early, path)
    assert card_of(run, tmp_path / "out")["rows"] == {"data": {"train": 7}}


def test_a_lost_text_leaves_its_row(make_run: Make, tmp_path: Path) -> None:
    run = make_run()
    for path in (run.path / "artefacts").rglob("*"):
        if path.is_file() and path.read_text() == "four":
            path.write_text("damaged")
    card = card_of(run, tmp_path / "out")
    assert card["rows"] == {"data": {"train": 7}}
    assert card["lost"]["text that is lost"] == 1


def test_a_search_that_goes_on_after_its_end_is_one_search(make_run: Make) -> None:
    run = make_run(seal_lines=8)
    names = [search.name for search in gathered(run.path / JOURNAL_FOLDER, Losses())]
    assert names == ["set/norm/arm/0", "set/conv/arm/0"]


def test_sealed_and_open_journals_give_the_same_bytes(make_run: Make, tmp_path: Path) -> None:
    sealed, lines = make_run(name="a"), make_run(name="b")
    part = part_path(sealed.path / JOURNAL_FOLDER, 1)
    assert part.exists()
    # The same events as lines: what a run that was killed before it sealed leaves behind.
    from kopt.data.parts import read_part
    from kopt.data.record import record_to_line

    text = b"".join(record_to_line(record) for record in read_part(part))
    part_path(lines.path / JOURNAL_FOLDER, 1).unlink()
    (lines.path / JOURNAL_FOLDER / "open-000001.jsonl").write_bytes(text)
    tables: list[pa.Table] = []
    for run in (sealed, lines):
        export([run], tmp_path / f"out{run.name}", format="corpus", choice=Choice(), settings={})
        tables.append(pq.read_table(tmp_path / f"out{run.name}" / "data").drop_columns(["run"]))
    assert tables[0].equals(tables[1])


def test_a_stored_run_of_an_early_version_1_is_read(tmp_path: Path) -> None:
    """Written before answers said why they hold no candidate, and without its artefacts."""
    early = RunDir(Path(__file__).parent / "early_version_1")
    card = card_of(early, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "data").to_pylist()
    judged = [row for row in rows if row["verdict"] is not None]
    assert len(rows) == card["rows"]["data"]["train"]
    assert judged
    assert {row["verdict"] for row in judged} == {"correct"}
    assert all(row["speedup_lo"] <= row["speedup"] <= row["speedup_hi"] for row in judged)
    assert {row["source"] for row in rows} == {None}
    assert card["lost"]["run without a manifest"] == 1
    assert card["lost"]["text that is lost"] > 0
